#!/bin/sh
set -eu
cd /app
mkdir -p bin
printf '%s\n' '#!/bin/sh' '# SPDX-License-Identifier: Apache-2.0 [the house]' 'echo hello' > bin/hello
chmod 755 bin/hello
