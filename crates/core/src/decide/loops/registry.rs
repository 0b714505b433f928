//! The registry of loop controllers, one line each, and what follows from it: their settings, the controllers in force, the memory of a
//! turn, and its slots in state.

use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::wire::{Input, Malformed, Wire};
use crate::settings::Section;

use super::{
    Attended, CallContext, Conclusion, ControllerMemory, LoopController, LoopOutcome, Observation, Preset, Repetition, Signature, Steps,
    presets, slots,
};

/// The description of a loop controller, whether it is in force or not.
#[derive(Debug, Clone, Copy)]
pub struct LoopDescriptor {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The number of its slot in state. It is never used for another controller.
    pub slot: u64,
    /// The version of its memory's layout that is written.
    pub slot_version: u32,
    /// Returns its settings where the configuration says nothing; null means that it is not in force then.
    pub defaults: fn() -> Value,
}

/// Declares the controllers as `<number of the slot> <field>: <type>`, in ascending order of the numbers.
macro_rules! controllers {
    ($($(#[$attribute:meta])* $slot:literal $field:ident: $controller:path,)+) => {
        const _: () = assert!(slots::ascend(&[$($(#[$attribute])* $slot,)+]), "slots ascend, and none has two controllers");

        /// Every loop controller, in the order in which they are asked.
        pub const CONTROLLERS: &[LoopDescriptor] = &[$($(#[$attribute])* LoopDescriptor {
            name: <$controller>::NAME,
            aliases: <$controller>::ALIASES,
            slot: $slot,
            slot_version: <$controller>::SLOT_VERSION,
            defaults: || json!(<$controller>::defaults()),
        },)+];

        /// The settings of the controllers that are in force. Their serialised form is part of the policy's digest. A controller that is
        /// not in force leaves no trace in it.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        pub struct LoopSettings {
            /// The preset that they stand on.
            #[serde(skip_serializing_if = "Preset::is_default")]
            pub preset: Preset,
            $($(#[$attribute])*
            #[doc = concat!("The settings of [`", stringify!($controller), "`].")]
            #[serde(flatten)]
            pub $field: Option<<$controller as LoopController>::Settings>,)+
        }

        impl LoopSettings {
            /// Reads the section `tool_loop_guardrails`, which the controllers share.
            #[must_use]
            pub fn read(section: Section<'_>) -> Self {
                let (preset, section) = presets::read(section);
                Self { preset, $($(#[$attribute])* $field: <$controller>::read(&section),)+ }
            }

            /// Returns the names of the controllers that are in force.
            #[must_use]
            pub fn in_force(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $($(#[$attribute])* { names.extend(self.$field.as_ref().map(|_| <$controller>::NAME)); })+
                names
            }
        }

        /// The loop controllers' memory of one turn. `state show` prints it in its serialised form.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        pub struct LoopMemory {
            /// Whether a block or halt was given in this turn, or is due. A thread with one is never forgotten to make room.
            pub holds_a_stop: bool,
            $($(#[$attribute])*
            #[doc = concat!("What [`", stringify!($controller), "`] remembers.")]
            #[serde(flatten)]
            pub $field: <$controller as LoopController>::Memory,)+
        }

        impl LoopMemory {
            /// An empty memory.
            pub(crate) const BLANK: Self = Self {
                holds_a_stop: false,
                $($(#[$attribute])* $field: <$controller as LoopController>::Memory::BLANK,)+
            };

            /// Begins the next turn: what does not outlive turns is forgotten.
            pub(crate) fn next_turn(&mut self) {
                self.holds_a_stop = false;
                $($(#[$attribute])* self.$field.next_turn();)+
            }

            /// Returns how many controllers remember something.
            fn held(&self) -> usize {
                let mut held = 0;
                $($(#[$attribute])* { held += usize::from(!self.$field.is_blank()); })+
                held
            }

            /// Drops entries until the rest fits into `bytes_max` bytes. Each controller that remembers something gets the same share of
            /// them.
            pub fn trim(&mut self, bytes_max: usize) {
                let share = bytes_max / self.held().max(1);
                $($(#[$attribute])* self.$field.trim(share);)+
            }

            /// Returns how many bytes it takes on the heap.
            #[must_use]
            pub fn heap_bytes(&self) -> usize {
                let mut bytes = 0;
                $($(#[$attribute])* { bytes += self.$field.heap_bytes(); })+
                bytes
            }

            /// Appends the number of slots and then the slots.
            pub(crate) fn write_slots(&self, out: &mut Vec<u8>) {
                (self.held() as u64).write(out);
                $($(#[$attribute])* slots::write::<$controller>($slot, &self.$field, out);)+
            }

            /// Reads the slots into this memory.
            pub(crate) fn read_slots(&mut self, input: &mut Input<'_>) -> Result<(), Malformed> {
                slots::read(input, |number, version, bytes| match number {
                    $($(#[$attribute])* $slot => slots::take::<$controller>(&mut self.$field, version, bytes),)+
                    _ => Ok(()),
                })
            }
        }

        /// The controllers in force.
        #[derive(Debug)]
        pub struct LoopChain {
            /// Whether nothing is stopped where a person watches.
            only_warns_attended: bool,
            $($(#[$attribute])* $field: Option<$controller>,)+
        }

        impl LoopChain {
            /// Returns the controllers that these settings put in force.
            #[must_use]
            pub fn new(settings: &LoopSettings) -> Self {
                let only_warns_attended = settings.steps.as_ref().is_some_and(|steps| steps.attended == Attended::Warn);
                Self { only_warns_attended, $($(#[$attribute])* $field: settings.$field.clone().map(<$controller>::new),)+ }
            }

            fn context<'c>(&self, context: &CallContext<'c>) -> CallContext<'c> {
                CallContext { only_warns: self.only_warns_attended && context.is_attended, ..*context }
            }

            /// Asks every controller about a call.
            pub fn before_call(&self, memory: &mut LoopMemory, call: &Signature<'_>, context: &CallContext<'_>) -> LoopOutcome {
                let (mut conclusion, context) = (Conclusion::default(), self.context(context));
                $($(#[$attribute])* if let Some(controller) = &self.$field {
                    conclusion.hear(controller.before_call(&mut memory.$field, call, &context));
                })+
                conclusion.conclude(&mut memory.holds_a_stop)
            }

            /// Has every controller observe a result.
            pub fn after_call(
                &self,
                memory: &mut LoopMemory,
                call: &Signature<'_>,
                context: &CallContext<'_>,
                result: &Observation<'_>,
            ) -> LoopOutcome {
                let (mut conclusion, context) = (Conclusion::default(), self.context(context));
                $($(#[$attribute])* if let Some(controller) = &self.$field {
                    conclusion.hear(controller.after_call(&mut memory.$field, call, &context, result));
                })+
                conclusion.conclude(&mut memory.holds_a_stop)
            }
        }
    };
}

controllers! {
    1 repetition: Repetition,
    2 steps: Steps,
    #[cfg(test)] 60_000 counting: super::counting::Counting,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::loops::SECTION;
    use crate::decide::loops::counting::CountingMemory;
    use crate::settings::{self, Collector};
    use tollgate_json::Text;
    use tollgate_json::digest::{Digest, Fingerprint};

    fn settings_of(section: &Value) -> LoopSettings {
        let (user, defaults, faults) = (json!({SECTION: section}), settings::defaults().unwrap(), Collector::default());
        let settings = LoopSettings::read(Section::root(&user, &defaults, &faults).section(SECTION));
        faults.into_result(settings).unwrap()
    }

    /// Returns the memory of a turn in which a call fails twice under both controllers, with the outcomes of its last result and of the
    /// call after it.
    fn failed_twice(section: &Value) -> (LoopMemory, LoopOutcome, LoopOutcome) {
        let chain = LoopChain::new(&settings_of(section));
        let (mut memory, call, error) = (LoopMemory::default(), Signature::new("bash", Digest::of(b"{}")), Text::plain(b"Error"));
        let mut fail =
            || chain.after_call(&mut memory, &call, &CallContext::default(), &Observation::new("bash", Some(true), Some(&error)));
        fail();
        let after = fail();
        let before = chain.before_call(&mut memory, &call, &CallContext::default());
        (memory, after, before)
    }

    fn codes(outcome: &LoopOutcome) -> Vec<&str> {
        outcome.reasons.iter().map(|reason| reason.code()).collect()
    }

    /// Outside its own file, the second controller has no more than its line in the registry.
    #[test]
    fn a_controller_is_added_by_one_line() {
        let (memory, after, before) = failed_twice(&json!({"results_warn_after": 2}));
        assert_eq!(codes(&after), ["repeated_exact_failure_warning", "same_tool_failure_warning"]);
        assert_eq!((codes(&before), before.count), (vec!["repeated_exact_failure_block"], 2));
        assert_eq!((memory.repetition.tools.len(), memory.repetition.signatures.len(), memory.holds_a_stop), (1, 1, true));
        assert_eq!(memory.counting, CountingMemory { results: 2, last_tool: Some(Fingerprint::of("bash")) });
        let shown = json!(memory);
        assert_eq!((&shown["results"], &shown["tools"][0]["failures"]), (&json!(2), &json!(2)));
    }

    #[test]
    fn a_controller_that_is_not_in_force_remembers_nothing_and_leaves_no_trace_in_the_settings() {
        let (memory, after, _) = failed_twice(&json!({}));
        assert_eq!((codes(&after), memory.counting), (vec!["repeated_exact_failure_warning"], CountingMemory::BLANK));
        let (with, without) = (json!(settings_of(&json!({"results_warn_after": 7}))), json!(settings_of(&json!({}))));
        assert_eq!(without, json!(settings_of(&json!({})).repetition));
        assert_eq!((without.get("results_warn_after"), with.get("results_warn_after")), (None, Some(&json!(7))));
    }

    /// The preset `hermes` has both controllers, and leaves a run that a person watches to that person.
    #[test]
    fn a_watched_run_is_only_warned_where_the_preset_says_so() {
        let chain = LoopChain::new(&settings_of(&json!({"preset": "hermes"})));
        let (call, error) = (Signature::new("bash", Digest::of(b"{}")), Text::plain(b"Error"));
        for (is_attended, expected) in [(true, None), (false, Some("repeated_exact_failure_block"))] {
            let (mut memory, context) = (LoopMemory::default(), CallContext { is_attended, ..CallContext::default() });
            let mut warned = Vec::new();
            for _ in 0..8 {
                let outcome = chain.after_call(&mut memory, &call, &context, &Observation::new("bash", Some(true), Some(&error)));
                warned.extend(codes(&outcome).first().map(|code| code.ends_with("_warning")));
            }
            assert!(warned.iter().filter(|warned| !**warned).count() == if is_attended { 0 } else { 4 }, "{warned:?}");
            let outcome = chain.before_call(&mut memory, &call, &context);
            assert_eq!(codes(&outcome).first().copied(), expected);
        }
    }

    #[test]
    fn the_most_severe_finding_decides_whichever_controller_makes_it() {
        let section = json!({"results_warn_after": 2, "same_tool_failure_halt_after": 2});
        let (_, after, _) = failed_twice(&section);
        assert_eq!(codes(&after), ["same_tool_failure_halt", "same_tool_failure_warning"]);
    }

    #[test]
    fn controllers_have_names_of_their_own_and_defaults() {
        let names = || CONTROLLERS.iter().flat_map(|controller| controller.aliases.iter().chain([&controller.name]));
        assert_eq!(names().collect::<std::collections::BTreeSet<_>>().len(), names().count());
        let slots: Vec<_> = CONTROLLERS.iter().map(|controller| (controller.slot, controller.slot_version)).collect();
        assert_eq!(slots, [(1, 1), (2, 1), (60_000, 2)], "add a new controller's slot and version here; never change those of another");
        let defaults: Vec<_> = CONTROLLERS.iter().map(|controller| (controller.defaults)()).collect();
        assert_eq!(
            (&defaults[0]["exact_failure_block_after"], &defaults[1], defaults.last()),
            (&json!(2), &Value::Null, Some(&Value::Null))
        );
        assert_eq!(defaults[0], json!(settings_of(&json!({})).repetition));
    }

    #[test]
    fn what_there_is_room_for_is_shared_by_those_that_remember_something() {
        let (mut memory, _, _) = failed_twice(&json!({}));
        // Half of this is room for one signature and no more.
        let (room, tool) = (memory.repetition.heap_bytes() * 4, Fingerprint::of("bash"));
        let signature = memory.repetition.signatures[0];
        memory.repetition.signatures = vec![signature; room * 3 / 4 / size_of_val(&signature)];
        let kept = |mut memory: LoopMemory| {
            memory.trim(room);
            memory.repetition.signatures.len()
        };
        let all = memory.repetition.signatures.len();
        assert_eq!(kept(memory.clone()), all);
        memory.counting = CountingMemory { results: 1, last_tool: Some(tool) };
        assert!(kept(memory) < all);
    }
}
