//! The panels, laid out, as Grafana reads them: JSON.

use serde_json::{Value, json};

use crate::panels::{Look, Panel, Query, Row, WORKERS, rows};
use crate::runbook::BASE_URL;

/// The version of the form of dashboards: that of Grafana 10 and later, which read older ones too.
const SCHEMA_VERSION: u32 = 39;
/// The columns of a line.
const COLUMNS: u32 = 24;
const NUMBER_HEIGHT: u32 = 4;
const PANEL_HEIGHT: u32 = 8;
const ROW_HEIGHT: u32 = 1;

/// The workers that are chosen at the top. Where targets have no namespace, the choice of all matches that too.
const CHOSEN: &str = r#"namespace=~"$namespace", job=~"$job", instance=~"$instance""#;
const CHOSEN_DEPLOYMENT: &str = r#"namespace=~"$namespace", job=~"$job""#;

/// Returns the text of the dashboard.
#[must_use]
pub fn text() -> String {
    // Values that are in memory can be written.
    serde_json::to_string_pretty(&dashboard()).unwrap_or_default() + "\n"
}

/// Returns the dashboard.
#[must_use]
pub fn dashboard() -> Value {
    json!({
        "uid": "tollgate",
        "title": "Tollgate",
        "description": "Are callers answered in time, what is stopped and why, who is behind, and is anything unsafe? Written from crates/monitoring.",
        "tags": ["tollgate"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "liveNow": false,
        "timezone": "browser",
        "weekStart": "",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {},
        "annotations": {"list": []},
        "links": [{
            "title": "Runbook", "type": "link", "url": BASE_URL, "icon": "doc", "tooltip": "What to do when an alert fires",
            "targetBlank": true, "asDropdown": false, "includeVars": false, "keepTime": false, "tags": [],
        }],
        "templating": {"list": variables()},
        "panels": panels(),
    })
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn variables() -> Vec<Value> {
    vec![
        json!({
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "regex": "", "hide": 0,
            "includeAll": false, "multi": false, "skipUrlSync": false, "options": [],
        }),
        variable("namespace", "Namespace", "label_values(tollgate_build_info, namespace)"),
        variable("job", "Job", r#"label_values(tollgate_build_info{namespace=~"$namespace"}, job)"#),
        variable("instance", "Worker", r#"label_values(tollgate_build_info{namespace=~"$namespace", job=~"$job"}, instance)"#),
    ]
}

fn variable(name: &str, label: &str, query: &str) -> Value {
    json!({
        "name": name, "label": label, "type": "query", "datasource": datasource(),
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "regex": "", "hide": 0, "includeAll": true, "allValue": ".*",
        "multi": true, "skipUrlSync": false, "options": [], "current": {"selected": true, "text": ["All"], "value": ["$__all"]},
    })
}

/// Lays the panels out: each row begins a line, and so does a panel that the line has no room for.
fn panels() -> Vec<Value> {
    let (mut placed, mut id, mut y) = (Vec::new(), 0, 0);
    for Row { question, panels } in rows() {
        id += 1;
        placed.push(json!({
            "id": id, "type": "row", "title": question, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": ROW_HEIGHT},
        }));
        y += ROW_HEIGHT;
        let (mut x, mut height) = (0, 0);
        for panel in &panels {
            if x + panel.width > COLUMNS {
                (x, y, height) = (0, y + height, 0);
            }
            let own = if panel.look == Look::Number { NUMBER_HEIGHT } else { PANEL_HEIGHT };
            id += 1;
            placed.push(one(panel, id, &json!({"x": x, "y": y, "w": panel.width, "h": own})));
            (x, height) = (x + panel.width, height.max(own));
        }
        y += height;
    }
    placed
}

fn one(panel: &Panel, id: u32, place: &Value) -> Value {
    let targets: Vec<Value> = panel.queries.iter().zip('A'..).map(|(query, letter)| target(query, letter, panel.look)).collect();
    let mut value = json!({
        "id": id,
        "type": match panel.look { Look::Lines | Look::Stack => "timeseries", Look::Number => "stat", Look::Table => "bargauge" },
        "title": panel.title,
        "description": panel.description,
        "datasource": datasource(),
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": defaults(panel), "overrides": []},
    });
    if let Some(members) = value.as_object_mut() {
        members.insert("options".to_owned(), options(panel.look));
    }
    value
}

/// Returns the expression of a query with the chosen workers put in.
#[must_use]
pub fn expression(query: &Query) -> String {
    query.expression.replace("@deployment", CHOSEN_DEPLOYMENT).replace(WORKERS, CHOSEN)
}

fn target(query: &Query, letter: char, look: Look) -> Value {
    let is_instant = matches!(look, Look::Number | Look::Table);
    json!({
        "refId": letter.to_string(), "datasource": datasource(), "expr": expression(query), "legendFormat": query.legend,
        "editorMode": "code", "instant": is_instant, "range": !is_instant,
    })
}

fn defaults(panel: &Panel) -> Value {
    let mut steps = vec![json!({"color": "green", "value": null})];
    steps.extend(panel.red_from.map(|value| json!({"color": "red", "value": value})));
    let color = if panel.look == Look::Number { "thresholds" } else { "palette-classic" };
    let mut defaults = json!({
        "unit": panel.unit, "min": 0, "color": {"mode": color}, "mappings": [], "thresholds": {"mode": "absolute", "steps": steps},
    });
    if let (Look::Lines | Look::Stack, Some(members)) = (panel.look, defaults.as_object_mut()) {
        let is_stack = panel.look == Look::Stack;
        let line = if panel.red_from.is_some() { "dashed" } else { "off" };
        let custom = json!({
            "drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": if is_stack { 30 } else { 5 },
            "gradientMode": "none", "showPoints": "never", "spanNulls": false, "axisPlacement": "auto",
            "scaleDistribution": {"type": "linear"}, "thresholdsStyle": {"mode": line},
            "stacking": {"group": "A", "mode": if is_stack { "normal" } else { "none" }},
        });
        members.insert("custom".to_owned(), custom);
    }
    defaults
}

fn options(look: Look) -> Value {
    let last = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
    match look {
        Look::Lines | Look::Stack => json!({
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }),
        Look::Number => json!({
            "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto", "reduceOptions": last,
        }),
        Look::Table => json!({
            "displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "text", "namePlacement": "auto",
            "sizing": "auto", "minVizHeight": 16, "minVizWidth": 8, "maxVizHeight": 300, "reduceOptions": last,
        }),
    }
}
