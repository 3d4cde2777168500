package dev.symplan.ir;

/** What a value is. */
public sealed interface Type permits TensorType, ScalarType, NoneType {}
