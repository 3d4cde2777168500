package dev.symplan.ir;

/** The type of a value. */
public sealed interface Type permits TensorType, ScalarType, NoneType {}
