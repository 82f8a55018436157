#!/bin/sh
set -eu
cd /app
mkdir -p decisions
cat > decisions/0001-record-decisions.md <<'END'
Decision: record decisions
State: accepted
Because: nobody remembers the reasons a year later
Costs: five lines each
Undo: delete the directory
END
