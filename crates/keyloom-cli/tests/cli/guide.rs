//! The guide's page on the command: every example runs and prints what the page shows.

use super::support::{Sandbox, repository, words};

/// The subcommands that the help lists.
pub fn subcommands(sandbox: &Sandbox) -> Vec<String> {
    let help = sandbox.run(&["--help"]).expect(0).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

fn page() -> String {
    std::fs::read_to_string(repository("docs/guide/command.md")).unwrap()
}

#[test]
fn every_subcommand_is_explained() {
    let page = page();
    for name in subcommands(&Sandbox::empty()) {
        assert!(page.contains(&format!("`keyloom {name}")), "the page does not tell of {name}");
    }
}

/// `$ keyloom …` is run; the lines below it, up to the next command, are what it prints. Words
/// that differ from run to run are `…` on the page.
#[test]
fn every_example_runs_and_prints_what_the_page_shows() {
    let sandbox = Sandbox::empty();
    let page = page();
    let mut count = 0;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        while let Some(command) = lines.next_if(|line| line.starts_with("$ keyloom ")) {
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
                shown.push(line);
            }
            let args = words(command.trim_start_matches("$ keyloom "));
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran =
                sandbox.run_with(&[&args[..], &["--table"]].concat(), &[("COLUMNS", "100")], "");
            assert!(ran.code == 0, "{command}: {}{}", ran.out, ran.err);
            let printed: Vec<&str> = ran.out.lines().chain(ran.err.lines()).collect();
            assert!(is_same(&shown, &printed), "{command} prints:\n{}", printed.join("\n"));
            count += 1;
        }
    }
    assert!(count > 10, "the page has lost its examples");
}

fn is_same(shown: &[&str], printed: &[&str]) -> bool {
    let is_line = |shown: &str, printed: &str| {
        let (shown, printed): (Vec<&str>, Vec<&str>) =
            (shown.split_whitespace().collect(), printed.split_whitespace().collect());
        let is_word = |(shown, printed): (&&str, &&str)| *shown == "…" || shown == printed;
        shown.len() == printed.len() && shown.iter().zip(&printed).all(is_word)
    };
    shown.len() == printed.len() && shown.iter().zip(printed).all(|(s, p)| is_line(s, p))
}
