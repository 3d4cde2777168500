package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;

/** Expands the calls of an op into steps. */
@FunctionalInterface
interface Composite {
  ImmutableList<Step> expand(Expansion call);
}
