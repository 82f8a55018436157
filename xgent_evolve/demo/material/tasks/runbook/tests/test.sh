#!/bin/sh
# The severity comes first and both steps follow it.
cd /app || exit 1
reward=0
file=ops/runbook.md
if [ -f "$file" ] && [ "$(sed -n 1p "$file")" = 'Severity: high' ]; then
    if grep -qi dashboard "$file" && grep -qi restart "$file"; then
        reward=1
    fi
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
