//! Folders that hold what can be made again: no repository and nothing that is worth blocking is taken to lie in them.

use super::super::path::NormalPath;

/// Folders that builds leave behind, and that lie in no place that is worth blocking.
pub(super) const BUILT: [&str; 2] = ["__pycache__", "node_modules"];

/// Folders that hold what builds, tests and linters write, and are taken away as a whole. No repository is taken to lie in them.
const LEFT_BEHIND: [&str; 28] = [
    ".cache",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    "_build",
    "bin",
    "build",
    "coverage",
    "dist",
    "htmlcov",
    "logs",
    "obj",
    "out",
    "site-packages",
    "target",
    "tmp",
    "venv",
];

/// Returns whether a path is such a folder, or lies below one.
pub(super) fn is_left_behind(path: &NormalPath) -> bool {
    path.lies_in(&BUILT) || path.lies_in(&LEFT_BEHIND)
}
