//! Draws jobs.

use maud::{Markup, html};

use super::{FindingTold, JobPage, JobTold, NotReadyTold, ResultTold, VerifyPage};
use crate::console::draw::{badge, count, crumbs, key, time};
use crate::console::index::tone;
use crate::console::links::Links;
use crate::console::once;
use crate::console::page::{MenuItem, Page};

impl Page for VerifyPage {
    fn title(&self) -> String {
        "Verify".to_owned()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Verify
    }

    fn refresh_s(&self) -> Option<u32> {
        self.jobs.iter().any(JobTold::is_running).then_some(2)
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (crumbs(&[("Overview", Some(links.overview())), ("Verify", None)]))
            h1 { "Verify and repair" }
            p.lead {
                "A verification looks at every record, every entry and every count, and finds what \
                 does not fit. Writers go on meanwhile, and nothing is changed."
            }
            (start(links, "/verify", None, "Verify the space", ""))
            section aria-labelledby="jobs" {
                h2 #jobs { "Jobs" }
                @if self.jobs.is_empty() {
                    div.empty { p { "Nothing has run since the server started." } }
                } @else { (self.table(links)) }
            }
        }
    }
}

impl VerifyPage {
    fn table(&self, links: &Links) -> Markup {
        html! {
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Job" } th scope="col" { "State" }
                            th scope="col" { "Started" } th.number scope="col" { "Took" }
                            th.number scope="col" { "Records" } th.number scope="col" { "Entries" }
                            th.number scope="col" { "Findings" }
                        }
                    }
                    tbody {
                        @for job in &self.jobs {
                            tr {
                                th scope="row" {
                                    a href=(links.to(&format!("/verify/{}", job.id), [])) { (job.name()) }
                                }
                                td { (job.badge()) }
                                td { (time(job.started_at)) }
                                td.number { (took(job.took_ms)) }
                                td.number { (count(job.progress.records)) }
                                td.number { (count(job.progress.entries)) }
                                td.number { (count(job.progress.findings)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Page for JobPage {
    fn title(&self) -> String {
        self.job.name()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Verify
    }

    fn refresh_s(&self) -> Option<u32> {
        self.job.is_running().then_some(1)
    }

    fn view(&self, links: &Links) -> Markup {
        let job = &self.job;
        html! {
            (crumbs(&[
                ("Overview", Some(links.overview())),
                ("Verify", Some(links.to("/verify", []))),
                (&job.name(), None),
            ]))
            h1 { (job.name()) }
            div.tiles {
                div.tile { span.name { "State" } (job.badge()) }
                div.tile { span.name { "Took" } strong { (took(job.took_ms)) } }
                div.tile { span.name { "Records" } strong { (count(job.progress.records)) } }
                div.tile { span.name { "Entries" } strong { (count(job.progress.entries)) } }
                div.tile { span.name { "Findings" } strong { (count(job.progress.findings)) } }
            }
            @if job.is_running() {
                p role="status" { "It runs" (job.how_far()) ". This page looks again every second." }
                (start(links, &format!("/verify/{}/stop", job.id), None, "Stop it", "quiet"))
            }
            @if let Some(problem) = &job.problem {
                div.notice.bad role="alert" {
                    p { strong { (problem["title"].as_str().unwrap_or_default()) } ": " (problem["detail"].as_str().unwrap_or_default()) }
                }
            }
            @if let Some(result) = &job.result { (job.result(result, links)) }
        }
    }
}

impl JobTold {
    fn name(&self) -> String {
        let text = |name: &str| self.request[name].as_str().unwrap_or_default();
        match self.kind.as_str() {
            "repair" if self.is_dry() => "Dry run of a repair".to_owned(),
            "repair" => "Repair".to_owned(),
            "verify" => "Verification".to_owned(),
            "build" => format!("Build of {}.{}", text("collection"), text("index")),
            other => other.to_owned(),
        }
    }

    /// How much of it is done, and how long the rest takes, as far as that is known.
    fn how_far(&self) -> String {
        let Some(estimate) = &self.estimate else { return String::new() };
        let Some(about) = estimate.about else { return String::new() };
        let percent = estimate.done.saturating_mul(100) / about.max(1);
        let left = match estimate.left_ms {
            Some(left_ms) => format!(", and takes about {} more", took(left_ms)),
            None => String::new(),
        };
        format!(", has done {percent} % of about {}{left}", count(about))
    }

    fn badge(&self) -> Markup {
        let tone = match self.state.as_str() {
            "done" => "good",
            "failed" => "bad",
            _ => "warn",
        };
        badge(&self.state, tone)
    }

    fn result(&self, result: &ResultTold, links: &Links) -> Markup {
        html! {
            @if result.unsettled > 0 {
                p.notice.warn {
                    (count(result.unsettled)) " suspicions could not be settled, because writers \
                     changed the records all the time. Run it again."
                }
            }
            @if let Some(findings) = &result.findings {
                @if (findings.len() as u64) < self.progress.findings {
                    p.muted { "The first " (count(findings.len() as u64)) " findings are listed." }
                }
                (verified(result, findings, links))
            }
            @if let Some(mended) = &result.mended { (self.repaired(result, mended, links)) }
            @if !result.idle().is_empty() { (not_ready(result.idle(), links)) }
            @if let Some(put) = result.put {
                p.notice.good role="status" { "It is complete and ready. " (count(put)) " entries were put." }
            }
        }
    }

    fn repaired(&self, result: &ResultTold, mended: &[FindingTold], links: &Links) -> Markup {
        let left = result.left.as_deref().unwrap_or_default();
        html! {
            @if mended.is_empty() && left.is_empty() {
                @if result.idle().is_empty() {
                    p.notice.good role="status" { "There was nothing to mend." }
                } @else {
                    p.notice.warn role="status" {
                        "There was nothing to mend in what is ready. The indexes below are built, not repaired."
                    }
                }
            }
            @if !mended.is_empty() {
                h2 { @if self.is_dry() { "Would be mended" } @else { "Mended" } }
                @if self.is_dry() {
                    p { "Nothing was written. Look through the list, then repair." }
                } @else {
                    p.notice.good role="status" { (count(result.mended_total())) " faults were mended." }
                }
                (table(mended, links))
            }
            @if !left.is_empty() {
                h2 { @if self.is_dry() { "Would be left" } @else { "Left as it is" } }
                p.muted { "These need a person: unreadable and unknown keys, and values that two records claim." }
                (table(left, links))
            }
            @if self.is_dry() && !mended.is_empty() {
                (start(links, "/repair", Some(false), "Repair now", ""))
            } @else {
                (start(links, "/verify", None, "Verify again", "quiet"))
            }
        }
    }
}

fn verified(result: &ResultTold, findings: &[FindingTold], links: &Links) -> Markup {
    html! {
        @if findings.is_empty() {
            @if result.idle().is_empty() {
                p.notice.good role="status" { "Everything fits. There is nothing to mend." }
            } @else {
                p.notice.warn role="status" {
                    "Everything that was looked at fits. Not all indexes are ready: see below."
                }
            }
            (start(links, "/verify", None, "Verify again", "quiet"))
        } @else {
            h2 { "Findings" }
            (table(findings, links))
            (start(links, "/repair", Some(true), "See what a repair would do", ""))
        }
    }
}

/// The indexes and aggregates that are not ready, each with a link to its page, which can build it.
fn not_ready(idle: &[NotReadyTold], links: &Links) -> Markup {
    html! {
        section aria-labelledby="not-ready" {
            h2 #not-ready { "Not ready" }
            p.muted {
                "These answer no query. Of disabled and failed ones nothing was looked at, and a \
                 unique one does not keep two records from having the same value."
            }
            div.scroll {
                table {
                    thead {
                        tr { th scope="col" { "Index" } th scope="col" { "State" } th scope="col" { "Why" } }
                    }
                    tbody {
                        @for NotReadyTold { collection, index, state, reason } in idle {
                            tr {
                                th scope="row" { a href=(links.index(collection, index)) { (collection) "." (index) } }
                                td { (badge(state, tone(state))) }
                                td {
                                    @match (reason, state.as_str()) {
                                        (Some(reason), _) => (reason),
                                        (None, "disabled") => "Somebody switched it off.",
                                        (None, _) => "It is not complete until it is built.",
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table(findings: &[FindingTold], links: &Links) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "What" } th scope="col" { "Of" } th scope="col" { "Key" }
                        th scope="col" { "Why" }
                    }
                }
                tbody {
                    @for finding in findings {
                        tr {
                            td { (badge(&finding.kind, "bad")) }
                            td { (of(finding, links)) }
                            td { a href=(links.keys(&finding.area, finding.key_bytes())) { (key(&finding.key)) } }
                            td { (finding.reason) }
                        }
                    }
                }
            }
        }
    }
}

/// The collection or the index of a finding.
fn of(finding: &FindingTold, links: &Links) -> Markup {
    html! {
        @match (&finding.collection, &finding.index) {
            (Some(collection), Some(index)) => a href=(links.index(collection, index)) { (collection) "." (index) },
            (Some(collection), None) => a href=(links.collection(collection)) { (collection) },
            (None, _) => span.muted { "nothing declared" },
        }
    }
}

/// A form with a single button.
fn start(links: &Links, path: &str, dry_run: Option<bool>, label: &str, class: &str) -> Markup {
    html! {
        form.actions method="post" action=(links.to(path, [])) {
            (once::field(None))
            @if let Some(dry_run) = dry_run { input type="hidden" name="dry_run" value=(dry_run); }
            button class=(class) { (label) }
        }
    }
}

fn took(took_ms: u64) -> String {
    match took_ms {
        0..1_000 => format!("{took_ms} ms"),
        _ => format!("{}.{} s", took_ms / 1_000, took_ms % 1_000 / 100),
    }
}
