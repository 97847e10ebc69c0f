//! The names of attributes' keys here and in NNVM: the one list.

/// Keys, each with NNVM's name of it.
pub const KEYS: &[(&str, &str)] = &[
    ("infer_shape", "FInferShape"),
    ("infer_type", "FInferType"),
    ("num_inputs", "FNumInputs"),
    ("num_outputs", "FNumOutputs"),
    ("visible_outputs", "FNumVisibleOutputs"),
    ("input_names", "FListInputNames"),
    ("output_names", "FListOutputNames"),
    ("parse", "attr_parser"),
    ("inplace", "FInplaceOption"),
    ("inplace_identity", "FInplaceIdentity"),
    ("mutates", "FMutateInputs"),
    ("ignores", "FIgnoreInputs"),
    ("gradient", "FGradient"),
    ("layout", "FCorrectLayout"),
    ("set_input_attribute", "FSetInputVarAttrOnCompose"),
];

/// The key that is meant: of NNVM's names the one of this list, any other itself.
#[must_use]
pub fn canonical(key: &str) -> &str {
    KEYS.iter().find(|(_, nnvm)| *nnvm == key).map_or(key, |(own, _)| own)
}
