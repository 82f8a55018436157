#!/bin/sh
set -eu
cd /app
mkdir -p etc
printf '%s\n' '[service]' 'cache_mib = 64' 'idle_timeout_s = 30' 'retry_limit_n = 3' > etc/settings.ini
