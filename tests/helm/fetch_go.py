"""Fetches a Go toolchain, which the module proxies serve as a module: fetch_go.py VERSION PLATFORM SHA256 FOLDER."""

import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import urllib.request
import zipfile

DEFAULT_PROXY = "https://proxy.golang.org"


def proxies():
    """Returns the proxies of GOPROXY that are addresses, in their order."""
    named = os.environ.get("GOPROXY", "").replace("|", ",").split(",")
    return [proxy.rstrip("/") for proxy in named if proxy.startswith("http")] or [DEFAULT_PROXY]


def download(version, platform, file):
    errors = []
    for proxy in proxies():
        try:
            with urllib.request.urlopen(f"{proxy}/golang.org/toolchain/@v/{version}.{platform}.zip", timeout=60) as answer:
                shutil.copyfileobj(answer, file)
            return
        except OSError as error:
            errors.append(str(error))
            file.seek(0)
            file.truncate()
    sys.exit(f"Go could not be fetched ({'; '.join(errors)}): please install Go 1.21 or later")


def main(version, platform, expected, folder):
    folder = pathlib.Path(folder)
    with tempfile.TemporaryFile() as file:
        download(version, platform, file)
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()
        if found != expected:
            sys.exit(f"the archive of Go {version} for {platform} has the SHA-256 {found}, and not {expected}")
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        prefix = f"golang.org/toolchain@{version}.{platform}/"
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                place = partial / entry.filename.removeprefix(prefix)
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, open(place, "wb") as copy:
                    shutil.copyfileobj(source, copy)
                # Archives of modules hold no modes.
                if place.parent.name == "bin" or "pkg/tool/" in place.as_posix():
                    place.chmod(0o755)
        partial.rename(folder)


main(*sys.argv[1:])
