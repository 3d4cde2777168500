package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;

/** How the calls of an op are made of steps. */
@FunctionalInterface
interface Composite {
  ImmutableList<Step> expand(Expansion call);
}
