package dev.symplan.ir.diag;

import com.google.common.base.Ascii;

/**
 * The kinds of errors in an input. Names are stable: scripts and documentation may rely on them.
 *
 * <p>Each has a section in {@code docs/errors.md}.
 */
public enum DiagnosticCode {
  /** The file cannot be read at all. */
  UNREADABLE_FILE,
  /** The file or folder cannot be written. */
  UNWRITABLE_FILE,
  /** The bytes are not UTF-8. */
  INVALID_UTF8,
  /** The file, a line or a nesting is larger than any sensible input. */
  TOO_LARGE,
  /** The text does not follow the grammar. */
  SYNTAX,
  /** The header names a version that this release does not read. */
  UNSUPPORTED_VERSION,
  /** A name is declared twice. */
  DUPLICATE_NAME,
  /** A value is used that is not defined before. */
  UNKNOWN_VALUE,
  /** No op, or no overload, of this name. */
  UNKNOWN_OP,
  /** A group is used that is not declared. */
  UNKNOWN_GROUP,
  /** An element type, memory space or constant of this name does not exist. */
  UNKNOWN_NAME,
  /** An op's schema is malformed. */
  BAD_SCHEMA,
  /** An op declaration's {@code symm_mem} or {@code group} names nothing in the schema. */
  BAD_REGISTRATION,
  /** The arguments do not fit the schema. */
  BAD_ARGUMENT,
  /** Shapes, strides or element types do not fit the op. */
  TYPE_MISMATCH,
  /** An annotation contradicts what the op gives. */
  ANNOTATION_MISMATCH,
  /** A type is needed that only an annotation can give. */
  MISSING_ANNOTATION,
  /** The rank list of a group does not fit the ranks that use it. */
  BAD_GROUP,
  /** A size is not known and no value was given for it. */
  DYNAMIC_SIZE,
  /** The per-rank versions of a program do not agree. */
  RANKS_DISAGREE,
  /** Graphs that are planned together do not fit each other. */
  BAD_TIES,
  /** An op that is not known was imported from its annotated type. */
  OPAQUE_OP,
  /** Something that this release does not do. */
  UNSUPPORTED,
  /** A plan file that is malformed or breaks a rule. */
  BAD_PLAN,
  /** A target file that is malformed. */
  BAD_TARGET,
  /** A file of measured points that is malformed. */
  BAD_POINTS,
  /** An archive that is damaged, or holds something that is not safe to read. */
  BAD_ARCHIVE,
  /** A tensor file that is malformed or does not fit the graph. */
  BAD_TENSORS,
  /** An option that does not fit the input. */
  BAD_OPTION;

  /** {@return the code as printed, for example {@code type-mismatch}} */
  public String text() {
    return Ascii.toLowerCase(name()).replace('_', '-');
  }
}
