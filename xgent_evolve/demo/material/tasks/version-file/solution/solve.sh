#!/bin/sh
set -eu
cd /app
mkdir -p meta
printf '%s\n' VERSION=0.1.0 CHANNEL=preview > meta/version.env
