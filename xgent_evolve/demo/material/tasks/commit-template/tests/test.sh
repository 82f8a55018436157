#!/bin/sh
# An empty subject, a blank line, and the three trailers in their order.
cd /app || exit 1
reward=0
if [ -f .commit-template ]; then
    head=$(sed -n '1,2p' .commit-template | tr -d '\n')
    trailers=$(sed -n 's/^\([A-Z][a-z]*\):.*$/\1/p' .commit-template | tr '\n' ' ')
    if [ -z "$head" ] && [ "$trailers" = 'Why Risk Undo ' ]; then
        reward=1
    fi
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
