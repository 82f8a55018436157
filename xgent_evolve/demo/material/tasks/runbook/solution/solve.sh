#!/bin/sh
set -eu
cd /app
mkdir -p ops
printf '%s\n' 'Severity: high' '1. Look at the dashboard.' '2. Restart the service.' > ops/runbook.md
