//! Patience: what looks like repetition and is not. Waiting for something, an outage that passes, and actions whose effect a result does not
//! show have limits of their own.

use super::memory::Marks;
use super::rules::Case;
use super::settings::StepSettings;
use crate::decide::loops::failure::position;
use crate::decide::ruling::Rule;
use crate::decide::tools::ToolPatterns;

/// What names of tools and command lines say that wait, in lower case.
const WAITING: [&str; 9] = ["poll", "status", "wait", "sleep", "kubectl get", "logs", "tail ", "watch", "get pods"];
/// What names of tools say that act on something whose state their result need not show, in lower case.
const ACTING: [&str; 10] = ["click", "press", "scroll", "swipe", "keypress", "key_", "tap", "next", "forward", "drag"];
/// By how much longer the patience with actions is where steps of several tools are counted: each action is followed by looks at its effect.
const STEPS_PER_ACTION: u32 = 3;

/// The limits that patience puts in the place of a rule's.
#[derive(Debug)]
pub struct Patience {
    waiting: u32,
    passing: u32,
    acting: u32,
    tools: Vec<(ToolPatterns, u32)>,
}

impl Patience {
    pub fn new(settings: &StepSettings) -> Self {
        let tools = settings.waiting_tools.iter().map(|(pattern, limit)| (ToolPatterns::new([pattern.clone()]), *limit)).collect();
        Self { waiting: settings.waiting_after, passing: settings.passing_after, acting: settings.acting_after, tools }
    }

    /// Returns whether a call waits or acts, by the tool's name and the beginning of its command line.
    pub fn marks(&self, tool_name: &str, command: &[u8]) -> Marks {
        let says = |text: &[u8], words: &[&str]| words.iter().any(|word| position(text, word).is_some());
        let name = tool_name.as_bytes();
        let is_waiting = self.waiting > 0 && (says(name, &WAITING) || says(command, &WAITING));
        let is_acting = self.acting > 0 && says(name, &ACTING);
        Marks::default().with(Marks::WAITING, is_waiting).with(Marks::ACTING, is_acting)
    }

    /// Returns the limit of a rule for a call.
    pub fn limit(&self, rule: Rule, limit: u32, marks: Marks, case: &Case<'_>, tool_name: &str) -> u32 {
        if matches!(rule, Rule::IdenticalCalls) && self.waiting == 0 {
            return limit;
        }
        let of_tool = self.tools.iter().find(|(tools, _)| tools.matches(tool_name)).map(|(_, limit)| *limit);
        if let Some(of_tool) = of_tool {
            return limit.max(of_tool);
        }
        let is_passing = self.passing > 0 && case.last.is_some_and(|last| last.marks.has(Marks::PASSING));
        let acts = |steps: usize| case.memory.steps.iter().rev().take(steps).any(|step| step.marks.has(Marks::ACTING));
        let own = match rule {
            // Nothing is waited for here.
            Rule::ErrorClass | Rule::NothingFound => 0,
            _ if marks.has(Marks::WAITING) => self.waiting,
            Rule::AlikeResult if marks.has(Marks::ACTING) => u32::MAX,
            Rule::NothingNew | Rule::FrequentCall | Rule::Cycle if marks.has(Marks::ACTING) || (self.acting > 0 && acts(8)) => {
                self.acting.saturating_mul(STEPS_PER_ACTION)
            }
            _ if marks.has(Marks::ACTING) => self.acting,
            _ => 0,
        };
        limit.max(own).max(if is_passing { self.passing } else { 0 })
    }
}
