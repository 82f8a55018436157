#!/bin/sh
# One section, keys sorted, every key with its unit.
cd /app || exit 1
reward=0
file=etc/settings.ini
if [ -f "$file" ] && [ "$(sed -n 1p "$file")" = '[service]' ]; then
    keys=$(sed -n 's/^\([a-z_]*\) = [0-9][0-9]*$/\1/p' "$file")
    wanted='cache_mib
idle_timeout_s
retry_limit_n'
    if [ "$keys" = "$wanted" ] && grep -qx 'idle_timeout_s = 30' "$file" &&
        grep -qx 'retry_limit_n = 3' "$file" && grep -qx 'cache_mib = 64' "$file"; then
        reward=1
    fi
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
