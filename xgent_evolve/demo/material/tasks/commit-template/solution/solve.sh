#!/bin/sh
set -eu
cd /app
printf '\n\nWhy: \nRisk: \nUndo: \n' > .commit-template
