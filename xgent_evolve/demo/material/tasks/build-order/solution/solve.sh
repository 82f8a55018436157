#!/bin/sh
set -eu
cd /app
printf '%s\n' core client installer > build-order.txt
