//! Every property of [`crate::key::fuzzing`], on random input.

use proptest::collection::vec;
use proptest::prelude::*;

use super::cases;
use crate::key::fuzzing;

/// Enough bytes for any template with its values; a short input makes all further choices the
/// first, so it is tried as well.
fn input() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => vec(any::<u8>(), 500), 1 => vec(any::<u8>(), 0..60)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(4000)))]

    #[test]
    fn decoding_accepts_only_what_encoding_gives(data in input()) {
        fuzzing::decode_any(&data);
    }

    #[test]
    fn a_key_decodes_to_what_made_it(data in input()) {
        fuzzing::round_trip(&data);
    }

    #[test]
    fn the_order_of_keys_is_that_of_values(data in input()) {
        fuzzing::order(&data);
    }

    #[test]
    fn a_range_holds_exactly_what_was_asked_for(data in input()) {
        fuzzing::ranges(&data);
    }

    #[test]
    fn skipping_jumps_over_no_own_key(data in input()) {
        fuzzing::skip(&data);
    }

    #[test]
    fn a_common_key_belongs_to_both_templates(data in input()) {
        fuzzing::overlap(&data);
    }

    #[test]
    fn a_recipe_leads_to_the_record(data in input()) {
        fuzzing::recipes(&data);
    }
}
