#!/bin/sh
# Exactly one record, with the five lines in their order and none of them empty.
cd /app || exit 1
reward=0
file=decisions/0001-record-decisions.md
if [ -f "$file" ] && [ "$(ls decisions)" = 0001-record-decisions.md ]; then
    names=$(sed -n 's/^\([A-Z][a-z]*\): ..*$/\1/p' "$file" | tr '\n' ' ')
    lines=$(grep -c '' "$file")
    if [ "$lines" -eq 5 ] && [ "$names" = 'Decision State Because Costs Undo ' ]; then
        reward=1
    fi
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
