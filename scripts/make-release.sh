#!/usr/bin/env bash
# Makes the files of a release in BUILD/release: wheels, an archive of the static tools and the library, the notes and checksums.
#
# Usage: make-release.sh [--dry-run] VERSION BUILD [PYTHON...]
#
# Wheels are made for the interpreters that are given or, without any, for those of CPython 3.9 to 3.14 in the PATH. With
# --dry-run nothing is built. Tags and uploads are left to the person: the commands for the tag are printed.
set -euo pipefail

refuse() {
  echo "make-release: $*" >&2
  exit 1
}

dry_run=false
if [[ ${1-} == --dry-run ]]; then
  dry_run=true
  shift
fi
version=${1-} build=${2-}
[[ -n $version ]] || refuse "no version is given; expected one such as 1.2.3: make release VERSION=1.2.3"
[[ $version =~ ^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}$ ]] || refuse "'$version' is no version; expected MAJOR.MINOR.PATCH, such as 1.2.3"
[[ -n $build ]] || refuse "no build directory is given; expected make-release.sh VERSION BUILD"
shift 2
cd "$(dirname "$0")/.."

changed=$(git status --porcelain)
[[ -z $changed ]] || refuse "the tree has changes that are not committed; commit or remove them:"$'\n'"$(head -5 <<< "$changed")"
! git rev-parse -q --verify "refs/tags/v$version" > /dev/null || refuse "the tag v$version exists already; a release has a new version"

# Everything else reads the version there.
found=$(sed -n 's/^project(flash-mlir VERSION \([^ )]*\).*/\1/p' CMakeLists.txt)
[[ $found == "$version" ]] || refuse "CMakeLists.txt has version '$found', not $version; change its line project(flash-mlir VERSION ...)"
! grep -qE '^version *=' pyproject.toml || refuse "pyproject.toml has a version of its own; expected dynamic = [\"version\"], which reads CMakeLists.txt"

heading=$(grep -F "## $version, " CHANGELOG.md) || refuse "CHANGELOG.md has no section for $version; expected a line ## $version, YYYY-MM-DD"
[[ $heading =~ ,\ [0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || refuse "the section of $version in CHANGELOG.md has no date; write ## $version, YYYY-MM-DD in place of '$heading'"
notes=$(awk -v heading="$heading" '/^## / { inside = $0 == heading; next } inside' CHANGELOG.md)
grep -qE '^[^#[:space:]]' <<< "$notes" || refuse "the section of $version in CHANGELOG.md is empty; say there what is new for users"

# From 3.12 on one wheel is for all.
pythons=() missing=()
get_version() { "$1" -c 'import platform, sys; print(platform.python_implementation(), "%d.%d" % sys.version_info[:2])' 2> /dev/null; }
if [[ $# -gt 0 ]]; then
  for python in "$@"; do
    what=$(get_version "$python") || refuse "PYTHONS has '$python', which does not run"
    [[ $what =~ ^CPython\ 3\.(9|1[0-4])$ ]] || refuse "PYTHONS has '$python', which is $what; wheels are for CPython 3.9 to 3.14"
    pythons+=("$python")
  done
else
  for minor in 9 10 11 12 13 14; do
    if [[ $(get_version "python3.$minor" || true) == "CPython 3.$minor" ]]; then
      pythons+=("python3.$minor")
    fi
  done
  [[ ${#pythons[@]} -gt 0 ]] || refuse "there is no python3.9 to python3.14 in the PATH; name interpreters with PYTHONS"
fi
have=$(for python in "${pythons[@]}"; do get_version "$python"; done)
for minor in 9 10 11; do
  grep -qx "CPython 3.$minor" <<< "$have" || missing+=("CPython 3.$minor")
done
grep -qE '^CPython 3\.1[2-4]$' <<< "$have" || missing+=("CPython 3.12 and later")
say_missing() {
  for each in "${missing[@]}"; do
    echo "make-release: no wheel for $each: no such interpreter was found"
  done
}

echo "make-release: $version from $(git rev-parse --short HEAD), with wheels by ${pythons[*]}"
say_missing
if $dry_run; then
  echo "make-release: nothing is built, as --dry-run says"
  exit 0
fi

make BUILD="$build" dist
make BUILD="$build" wheel PYTHONS="${pythons[*]}"
release=$build/release name=flash-mlir-$version-linux-$(uname -m)
"$build/dist/flash-run" --version | grep -qF "flash-mlir $version " || refuse "$build/dist/flash-run is not of version $version; remove $build and begin again"
rm -rf "$release"
mkdir -p "$release"
cp "$build"/wheels/flash_mlir-"$version"-*.whl "$release"
tar -C "$build" --transform "s,^dist,$name," --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
  -czf "$release/$name.tar.gz" dist
awk 'NF { begun = 1 } begun' <<< "$notes" > "$release/notes.md"
(cd "$release" && sha256sum -- *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS)
say_missing
cat << COMMANDS
make-release: $release is complete; to publish it:
  git tag -a v$version -m 'flash-mlir $version'
  git push origin v$version
COMMANDS
