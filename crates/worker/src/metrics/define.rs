//! The macros that turn a list of metrics into fields, registration and a catalogue.

use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// A distribution over buckets with these upper bounds.
    Histogram(&'static [f64]),
}

/// The description of one metric, as the list has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// The metric's name.
    pub name: &'static str,
    /// The metric's type.
    pub kind: Kind,
    /// The names of the metric's labels.
    pub labels: &'static [&'static str],
    /// What the metric measures, with its unit.
    pub help: &'static str,
    /// When to raise an alert; `None` if there is no reason for one.
    pub alert: Option<&'static str>,
}

/// The error when a metric cannot be made: two have the same name, or labels do not fit. A test makes all of them.
pub type MetricsError = prometheus::Error;

/// A type of metric that can be made from its entry in the list.
pub(super) trait Make: Collector + Clone + 'static {
    /// Returns a metric for an entry, not registered yet.
    fn make(spec: &Spec) -> Result<Self, MetricsError>;
}

impl Make for IntCounter {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::new(spec.name, spec.help)
    }
}

impl Make for IntCounterVec {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::new(Opts::new(spec.name, spec.help), spec.labels)
    }
}

impl Make for IntGauge {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::new(spec.name, spec.help)
    }
}

impl Make for IntGaugeVec {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::new(Opts::new(spec.name, spec.help), spec.labels)
    }
}

impl Make for Histogram {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::with_opts(histogram_opts(spec)?)
    }
}

impl Make for HistogramVec {
    fn make(spec: &Spec) -> Result<Self, MetricsError> {
        Self::new(histogram_opts(spec)?, spec.labels)
    }
}

fn histogram_opts(spec: &Spec) -> Result<HistogramOpts, MetricsError> {
    let Kind::Histogram(buckets) = spec.kind else {
        return Err(MetricsError::Msg(format!("{} is no histogram", spec.name)));
    };
    Ok(HistogramOpts::new(spec.name, spec.help).buckets(buckets.to_vec()))
}

/// Returns a metric for an entry, registered so that it is shown from now on.
pub(super) fn register<M: Make>(registry: &Registry, spec: &Spec) -> Result<M, MetricsError> {
    let metric = M::make(spec)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// Defines `Metrics` with a public field for each entry of its block. For each block `method: Handle by "label"` it defines a handle for
/// the series of one value of that label. It also defines `CATALOG`, which holds every entry. An entry is `kind field = "name" ["label", …]
/// "help", alert "when";`. Leave `alert` out where there is no reason for one, leave the labels out in the block of a handle, and write
/// `histogram(BUCKETS)` for a kind that needs buckets. The labels decide the field's type: without any it is one counter, else a counter by
/// label.
macro_rules! define_metrics {
    (
        Metrics {
            $($kind:ident $(($buckets:expr))? $field:ident = $name:literal $labels:tt $help:literal $(, alert $alert:literal)?;)+
        }
        $(#[doc = $of:literal] $method:ident: $handle:ident by $label:literal {
            $($own_kind:ident $(($own_buckets:expr))? $own:ident = $own_name:literal $own_help:literal $(, alert $own_alert:literal)?;)+
        })*
    ) => {
        /// The descriptions of all metrics.
        pub const CATALOG: &[$crate::metrics::define::Spec] = &[
            $(define_metrics!(@spec $kind $(($buckets))? $name $labels $help $($alert)?),)+
            $($(define_metrics!(@spec $own_kind $(($own_buckets))? $own_name [$label] $own_help $($own_alert)?),)+)*
        ];

        /// All metrics of the process. Clones share them.
        #[derive(Debug, Clone)]
        pub struct Metrics {
            registry: prometheus::Registry,
            /// The registries of further stages, which have the same metrics under a label of their own.
            stages: std::sync::Arc<$crate::metrics::stages::Stages>,
            $(#[doc = $help] pub $field: define_metrics!(@type $kind $labels),)+
            $(
                $($own: define_metrics!(@type $own_kind [$label]),)+
                $method: std::sync::Arc<$crate::metrics::series::Holders>,
            )*
        }

        impl Metrics {
            /// Creates and registers every metric of the list.
            ///
            /// # Errors
            /// Returns [`MetricsError`]($crate::metrics::MetricsError) if the list contradicts itself.
            pub fn new() -> Result<Self, $crate::metrics::MetricsError> {
                Self::registered(prometheus::Registry::new())
            }

            /// Returns metrics of the same list for a further stage of the process. Those that every stage counts are shown on the same page,
            /// with the label `stage`; without that label they are the deciding stage's.
            ///
            /// # Errors
            /// Returns [`MetricsError`]($crate::metrics::MetricsError) if the list contradicts itself.
            #[allow(dead_code, reason = "a list of tests has no stages")]
            pub fn for_stage(&self, stage: &str) -> Result<Self, $crate::metrics::MetricsError> {
                let labels = [("stage".to_owned(), stage.to_owned())].into_iter().collect();
                let of_stage = Self::registered(prometheus::Registry::new_custom(None, Some(labels))?)?;
                self.stages.add(of_stage.registry.clone());
                Ok(of_stage)
            }

            fn registered(registry: prometheus::Registry) -> Result<Self, $crate::metrics::MetricsError> {
                use $crate::metrics::define::register;
                Ok(Self {
                    stages: std::sync::Arc::default(),
                    $($field: register(&registry, &define_metrics!(@spec $kind $(($buckets))? $name $labels $help))?,)+
                    $(
                        $($own: register(&registry, &define_metrics!(@spec $own_kind $(($own_buckets))? $own_name [$label] $own_help))?,)+
                        $method: std::sync::Arc::default(),
                    )*
                    registry,
                })
            }

            /// Returns the registry, for metrics that are made elsewhere.
            #[allow(dead_code, reason = "a list of tests has no such metrics")]
            pub(in crate::metrics) fn registry(&self) -> &prometheus::Registry {
                &self.registry
            }

            /// Returns the text of `/metrics`.
            #[must_use]
            pub fn render(&self) -> Vec<u8> {
                let mut text = Vec::new();
                // Encoding into memory fails only for a metric without samples, and `gather` leaves those out.
                let _infallible = prometheus::Encoder::encode(&prometheus::TextEncoder::new(), &self.stages.gather(&self.registry), &mut text);
                text
            }

            $(
                #[doc = $of]
                ///
                /// A series appears when it is first used, and all of them go when the last handle for the same value is dropped.
                #[must_use]
                pub fn $method(&self, label: impl std::fmt::Display) -> $handle {
                    let label = label.to_string();
                    self.$method.take(&label);
                    $handle {
                        $($own: $crate::metrics::series::Series::new(&self.$own, &label),)+
                        holders: std::sync::Arc::clone(&self.$method),
                        label,
                    }
                }
            )*
        }

        $(
            #[doc = $of]
            #[derive(Debug)]
            pub struct $handle {
                $(#[doc = $own_help] pub $own: $crate::metrics::series::Series<define_metrics!(@type $own_kind [$label])>,)+
                holders: std::sync::Arc<$crate::metrics::series::Holders>,
                label: String,
            }

            #[cfg(test)]
            impl $handle {
                /// Creates every series, as its first use does.
                pub fn make_all(&self) {
                    $(let _made = &*self.$own;)+
                }
            }

            impl Drop for $handle {
                fn drop(&mut self) {
                    self.holders.release(&self.label, || {
                        $(self.$own.remove();)+
                    });
                }
            }
        )*
    };

    (@spec $kind:ident $(($buckets:expr))? $name:literal $labels:tt $help:literal $($alert:literal)?) => {
        $crate::metrics::define::Spec {
            name: $name,
            kind: define_metrics!(@kind $kind $(($buckets))?),
            labels: &$labels,
            help: $help,
            alert: define_metrics!(@alert $($alert)?),
        }
    };
    (@kind counter) => { $crate::metrics::define::Kind::Counter };
    (@kind gauge) => { $crate::metrics::define::Kind::Gauge };
    (@kind histogram ($buckets:expr)) => { $crate::metrics::define::Kind::Histogram($buckets) };
    (@alert) => { None };
    (@alert $alert:literal) => { Some($alert) };
    (@type counter []) => { prometheus::IntCounter };
    (@type counter $labels:tt) => { prometheus::IntCounterVec };
    (@type gauge []) => { prometheus::IntGauge };
    (@type gauge $labels:tt) => { prometheus::IntGaugeVec };
    (@type histogram []) => { prometheus::Histogram };
    (@type histogram $labels:tt) => { prometheus::HistogramVec };
}

pub(super) use define_metrics;

#[cfg(test)]
mod tests {
    use crate::metrics::page;

    /// A list of three metrics, which need one line each.
    mod three {
        define_metrics! {
            Metrics {
                counter seen = "tollgate_seen_total" ["type"] "Things seen.", alert "any growth";
                histogram(&[0.5, 1.0]) taken = "tollgate_taken_seconds" [] "Seconds taken.";
            }
            /// The series of one partition.
            partition: PartitionMetrics by "partition" {
                gauge depth = "tollgate_depth_records" "Records waiting.";
            }
        }
    }

    #[test]
    fn one_line_is_a_field_a_series_and_a_row() {
        let metrics = three::Metrics::new().unwrap();
        metrics.seen.with_label_values(&["x"]).inc();
        metrics.taken.observe(0.7);
        let partition = metrics.partition(7);
        partition.make_all();
        partition.depth.set(5);
        let text = String::from_utf8(metrics.render()).unwrap();
        for line in [
            "# HELP tollgate_seen_total Things seen.",
            "# TYPE tollgate_seen_total counter",
            "tollgate_seen_total{type=\"x\"} 1",
            "tollgate_taken_seconds_bucket{le=\"0.5\"} 0",
            "tollgate_taken_seconds_bucket{le=\"1\"} 1",
            "tollgate_depth_records{partition=\"7\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        drop(partition);
        assert!(!String::from_utf8(metrics.render()).unwrap().contains("tollgate_depth_records{"));
        let page = page(three::CATALOG);
        assert!(page.contains("| `tollgate_seen_total` | counter | type | Things seen. | any growth |"), "{page}");
        assert!(page.contains("| `tollgate_depth_records` | gauge | partition | Records waiting. | |"), "{page}");
    }
}
