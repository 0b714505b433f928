//! Patterns with which tools for files look for names below folders.

use tollgate_json::Text;

use super::super::super::argument_role::ArgumentRole;
use super::super::super::arguments::Sorted;
use super::super::super::denial::{Denial, Report, report};
use super::super::super::path::NormalPath;
use super::super::file_arguments::{Origin, names_looked_for, rooted, shows_names};
use super::super::file_path::{check_pattern, read_path};
use super::super::file_patterns::Patterns;
use super::super::{RuleCall, budget, check_limit};
use super::{FOUND, FileLimits, MATCHED, deny_if};

/// The most pairs of a folder of the call and a pattern from the root. Hosts differ in whether such a pattern is seen from the root or from the
/// folder, so each pair is looked at.
const ROOTED_MAX: usize = 64;

/// How many components each pattern counts at least, with its folder.
const COMPONENTS_EACH: usize = 4;

impl FileLimits {
    /// Reports the checks of the patterns with which a call looks for names below its folders.
    pub(super) fn check_searches(&self, call: &RuleCall<'_>, sorted: &Sorted<'_>, folders: &[String], to: &mut dyn Report) {
        report(to, "pattern", check_text(call));
        let looked_for = names_looked_for(call);
        let compared = sorted.of(ArgumentRole::Pattern).chain(&looked_for).map(|pattern| &**pattern);
        // Every pattern is looked for below every folder.
        let components: usize = compared.map(|pattern| COMPONENTS_EACH + pattern.matches(['/', ',', ' ']).count()).sum();
        if let Err(denial) = budget::check_pairs(components.saturating_mul(folders.len() + 1), call.files.limits.entries()) {
            return report(to, "budget", Err(denial));
        }
        let patterns = sorted.named(ArgumentRole::Pattern).chain(looked_for.iter().map(|pattern| ("pattern", pattern)));
        for (name, pattern) in patterns {
            if let Some(places) = rooted(call, pattern).filter(|places| places.len().saturating_mul(folders.len() + 1) <= ROOTED_MAX) {
                let rests: Vec<String> = places.iter().map(|(_, rest)| rest.clone()).collect();
                let checked = budget::check_glob(&rests, pattern).and_then(|()| check_pattern(pattern, &rests, shows_names(call)));
                report(to, "pattern", checked);
                places.iter().for_each(|place| self.check_rooted(place, Origin::Argument(name), folders, to));
                continue;
            }
            // Hosts take several patterns in a text.
            let parts = |text: String| text.split([',', ' ']).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            let expansions: Vec<String> = bash_commands::braces(pattern).into_iter().flat_map(parts).collect();
            let checked = budget::check_glob(&expansions, pattern).and_then(|()| check_pattern(pattern, &expansions, shows_names(call)));
            report(to, "pattern", checked.and_then(|()| self.check_expansions(&expansions, folders)));
        }
    }

    /// Reports the checks of a pattern from the root: of its literal folder as of a path of the call, and of the rest below this folder. A host
    /// may see the folder from those of the call.
    fn check_rooted(&self, (head, rest): &(String, String), origin: Origin<'_>, folders: &[String], to: &mut dyn Report) {
        self.check_path(head, origin, true, to);
        let seen: Vec<String> = folders.iter().map(|folder| format!("{folder}{head}")).collect();
        for place in &seen {
            match read_path(place) {
                Ok(path) => self.check_place(&path, place, true, to),
                Err(denial) => report(to, "path", Err(denial)),
            }
        }
        if !rest.is_empty() {
            let folders: Vec<String> = std::iter::once(head.clone()).chain(seen).collect();
            report(to, "pattern", self.check_expansions(std::slice::from_ref(rest), &folders));
        }
    }

    /// Checks the expansions of a pattern of names below these folders.
    fn check_expansions(&self, expansions: &[String], folders: &[String]) -> Result<(), Denial> {
        self.check_looks_for(expansions, folders)?;
        expansions.iter().try_for_each(|glob| self.extensions.check_ending(NormalPath::new(glob).name()))
    }

    /// Checks that none of the expansions of a pattern of names asks for a blocked path below these folders by its name. What a search finds by
    /// itself below its folder is not seen, and neither is what every name is looked for with. A pattern that leaves names out asks for none.
    fn check_looks_for(&self, expansions: &[String], folders: &[String]) -> Result<(), Denial> {
        check_limit(&self.blocked_paths, |blocked| {
            let is_in = |folder: &String, glob: &str| {
                let depth = if glob.contains('/') { "" } else { "/**" };
                blocked.may_be_found_at(&format!("{folder}{depth}/{glob}"))
            };
            // A host may look from its own folder, wherever the paths of the call lead.
            let is_bare = |glob: &str| glob.contains('/') && blocked.may_be_found_at(glob);
            let asks = |glob: &String| {
                !glob.starts_with('!')
                    && blocked.is_asked_for_by(glob)
                    && (folders.iter().any(|folder| is_in(folder, glob)) || is_bare(glob))
            };
            deny_if(expansions.iter().any(asks), "oap.path_blocked", FOUND)
        })?;
        let asks = |patterns: &Patterns| expansions.iter().any(|glob| !glob.starts_with('!') && patterns.is_asked_for_by(glob, folders));
        check_limit(&self.blocked_patterns, |patterns| deny_if(asks(patterns), "oap.blocked_pattern", MATCHED))
    }
}

/// TABLE: tools that hand the text that they look for to a program as it stands, where it may be an option.
const HAND_ON: [&str; 3] = ["search_files", "search_file_content", "ripgrep"];

/// Checks that the text which a tool looks for is no option of the program that looks for it.
fn check_text(call: &RuleCall<'_>) -> Result<(), Denial> {
    const MESSAGE: &str = "What is looked for begins as an option does; write [-] for the first sign";
    let texts = call.arguments.named(&["pattern", "query", "regex", "regexp", "search", "needle"]);
    let is_option = |text: &str| text.starts_with('-');
    let has_option = texts.iter().any(|(_, value)| value.as_text().and_then(Text::into_str).is_some_and(|text| is_option(&text)));
    deny_if(HAND_ON.contains(&call.tool_name) && has_option, "oap.invalid_tool_arguments", MESSAGE)
}
