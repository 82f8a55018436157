#!/bin/sh
set -eu
cd /app
mkdir -p notes
printf '%s\n' 'area | change | who notices' 'build | first build | everyone' > notes/next.txt
