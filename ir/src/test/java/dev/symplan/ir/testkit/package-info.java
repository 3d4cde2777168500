/** What the tests of every module share. */
@NullMarked
package dev.symplan.ir.testkit;

import org.jspecify.annotations.NullMarked;
