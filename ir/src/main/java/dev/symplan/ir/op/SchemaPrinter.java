package dev.symplan.ir.op;

/**
 * Where an alias annotation stands: after the innermost element type, or after the whole type where
 * it says so, as PyTorch writes it.
 */
final class SchemaPrinter {
  private SchemaPrinter() {}

  /** {@return for example {@code Tensor(a!)}, {@code Tensor(a!)[]}, {@code Tensor(a)?}} */
  static String typed(SchemaType type, AliasInfo alias) {
    if (!alias.isPresent()) {
      return type.toString();
    }
    if (alias.outermost()) {
      return type.toString() + alias;
    }
    return switch (type) {
      case SchemaType.OptionalOf(SchemaType element) -> typed(element, alias) + "?";
      case SchemaType.ListOf list ->
          typed(list.element(), alias)
              + list.toString().substring(list.element().toString().length());
      case SchemaType.Base _, SchemaType.TupleOf _, SchemaType.GenericOf _, SchemaType.Named _ ->
          type.toString() + alias;
    };
  }
}
