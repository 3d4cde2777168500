package dev.symplan.ir.op;

/**
 * A result of a schema.
 *
 * @param name empty if the schema gives none
 */
public record SchemaResult(String name, SchemaType type, AliasInfo alias) {
  @Override
  public String toString() {
    var typed = SchemaPrinter.typed(type, alias);
    return name.isEmpty() ? typed : typed + " " + name;
  }
}
