package dev.symplan.runtime.torch;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.Signature;
import dev.symplan.runtime.Signature.Slot;
import dev.symplan.runtime.Signature.Use;

/** A signature for the caller, in PyTorch's terms. */
final class SignatureJson {
  private SignatureJson() {}

  static String print(Signature signature, long alignment) {
    var root = JsonNodeFactory.instance.objectNode();
    root.put("alignment", alignment);
    var inputs = root.putArray("inputs");
    signature.inputs().forEach(slot -> add(inputs, slot));
    var outputs = root.putArray("outputs");
    signature.outputs().forEach(slot -> add(outputs, slot));
    return root.toString();
  }

  private static void add(ArrayNode slots, Slot slot) {
    var node = slots.addObject();
    node.put("name", slot.name());
    slot.type()
        .ifPresent(
            type -> {
              node.put("dtype", type.dtype().torchName());
              type.sizes().forEach(node.putArray("sizes")::add);
              type.strides().forEach(node.putArray("strides")::add);
              node.put("bytes", type.storageBytes());
            });
    switch (slot.use()) {
      case Use.Nothing _ -> node.put("use", "nothing");
      case Use.Direct _ -> node.put("use", "direct");
      case Use.Copied(var place, _) -> node.put("use", "copied").put("place", place);
      case Use.OfInput(int input, long offset) ->
          node.put("use", "input").put("of", input).put("offset", elements(slot, offset));
      case Use.OfOutput(int output, long offset) ->
          node.put("use", "output").put("of", output).put("offset", elements(slot, offset));
    }
  }

  /** PyTorch counts offsets in elements. */
  private static long elements(Slot slot, long offset) {
    return offset / slot.type().map(TensorType::dtype).orElseThrow().bytes();
  }
}
