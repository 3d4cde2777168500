/** Finds out what this machine has, and what it lacks, to run plans on its GPUs. */
@NullMarked
package dev.symplan.runtime.doctor;

import org.jspecify.annotations.NullMarked;
