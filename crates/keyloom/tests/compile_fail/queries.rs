//! Ranges and orders that the index does not have.

use keyloom::{Collection, Id, Record, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "approval:record:{id}")]
#[index(requester = "approval:index:requester:{requester_id}:{created_at desc}:{id}")]
#[index(team = "approval:index:team:{team}:{requester_id}:{created_at desc}:{id}")]
struct Approval {
    id: Id,
    team: String,
    requester_id: String,
    created_at: Timestamp,
}

fn a_range_on_text(approvals: &Collection<Approval>) {
    let _ = approvals.by_team("red").requester_id("a".."b");
}

fn a_range_before_the_segments_above_it(approvals: &Collection<Approval>, since: Timestamp) {
    let _ = approvals.by_team("red").created_at(since..);
}

fn two_ranges(approvals: &Collection<Approval>, since: Timestamp) {
    let _ = approvals.by_requester("ana").created_at(since..).created_at(..since);
}

fn an_order_on_text(approvals: &Collection<Approval>) {
    let _ = approvals.by_team("red").ascending();
}

fn an_order_on_nothing(approvals: &Collection<Approval>, id: Id, at: Timestamp) {
    let _ = approvals.by_requester("ana").created_at(at).id(id).newest();
}

fn newest_of_ids(approvals: &Collection<Approval>, at: Timestamp) {
    let _ = approvals.by_requester("ana").created_at(at).newest();
}

fn a_value_of_another_type(approvals: &Collection<Approval>) {
    let _ = approvals.by_requester("ana").created_at("yesterday");
}

fn a_union_of_different_rests(approvals: &Collection<Approval>) {
    let _ = approvals.by_requester("ana").or(approvals.by_team("red"));
}

async fn a_key_of_an_array(approvals: &Collection<Approval>) {
    let _ = approvals.get(["ana"]).await;
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "block:{height}")]
#[index(size = "block:size:{size}:{height}")]
#[index(share = "block:share:{share}:{height}")]
struct Block {
    height: u64,
    size: usize,
    share: f64,
}

fn text_for_a_number(blocks: &Collection<Block>) {
    let _ = blocks.by_size().size("large");
}

fn a_number_of_too_many_bits(blocks: &Collection<Block>, size: u128) {
    let _ = blocks.by_size().size(size);
}

fn a_range_of_texts_for_a_number(blocks: &Collection<Block>) {
    let _ = blocks.by_size().size("1".."9");
}

fn a_whole_number_for_a_fraction(blocks: &Collection<Block>) {
    let _ = blocks.by_share().share(1);
}

fn main() {}
