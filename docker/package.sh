#!/bin/sh
# Lays out what a package of the program consists of: docker/package.sh PROGRAM FOLDER
#
# Below FOLDER are then bin, share/man, the completions where the shells look for them, and the licences. Manual pages and
# completions are printed by the program itself, so they are always those of this build.
set -eu
program=$1
folder=$2
here=$(dirname "$0")/..

install -D -m 755 "$program" "$folder/bin/leasehold"
program=$folder/bin/leasehold
"$program" man --directory "$folder/share/man/man1"
completions() {
    mkdir -p "$folder/share/$2"
    "$program" completions "$1" > "$folder/share/$2/$3"
}
completions bash bash-completion/completions leasehold
completions zsh zsh/site-functions _leasehold
completions fish fish/vendor_completions.d leasehold.fish
install -D -m 644 -t "$folder/share/doc/leasehold" "$here/LICENSE-APACHE" "$here/LICENSE-MIT" "$here/crates/cli/README.md"
