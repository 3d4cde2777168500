package dev.symplan.runtime.tensor;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableBiMap;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Files of named tensors in the safetensors format: the length of the header in 8 bytes, the header
 * in JSON, the tensors row-major behind each other.
 */
public final class Safetensors {

  /** What the format's own reader allows for a header. */
  private static final long MAX_HEADER = 100_000_000;

  private static final ImmutableBiMap<String, DType> DTYPES =
      ImmutableBiMap.<String, DType>builder()
          .put("F64", DType.F64)
          .put("F32", DType.F32)
          .put("F16", DType.F16)
          .put("BF16", DType.BF16)
          .put("F8_E4M3", DType.F8E4M3FN)
          .put("F8_E5M2", DType.F8E5M2)
          .put("I64", DType.I64)
          .put("I32", DType.I32)
          .put("I16", DType.I16)
          .put("I8", DType.I8)
          .put("U64", DType.U64)
          .put("U32", DType.U32)
          .put("U16", DType.U16)
          .put("U8", DType.U8)
          .put("BOOL", DType.BOOL)
          .put("C64", DType.C64)
          .buildOrThrow();

  private final Path file;

  private Safetensors(Path file) {
    this.file = file;
  }

  /**
   * {@return the tensors of a file, by name; their memory is the file's, read when touched}
   *
   * @throws CompileException when the file cannot be read or its header does not fit its data
   */
  public static ImmutableMap<String, HostTensor> read(Path file) {
    return new Safetensors(file).read();
  }

  private ImmutableMap<String, HostTensor> read() {
    if (Files.isDirectory(file)) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "this is a directory", "");
    }
    MemorySegment all;
    try (var channel = FileChannel.open(file, StandardOpenOption.READ)) {
      all = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), Arena.ofAuto());
    } catch (NoSuchFileException e) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "there is no such file", "");
    } catch (IOException e) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "cannot read it: " + e.getMessage(), "");
    }
    if (all.byteSize() < Long.BYTES) {
      throw wrong("it has %d bytes, too few for a header".formatted(all.byteSize()));
    }
    long length = all.get(Elements.LONG, 0);
    if (length < 2 || length > MAX_HEADER || length > all.byteSize() - Long.BYTES) {
      throw wrong(
          "its header should have %d bytes, but %d are left; is the file truncated?"
              .formatted(length, all.byteSize() - Long.BYTES));
    }
    var header = header(all.asSlice(Long.BYTES, length));
    var data = all.asSlice(Long.BYTES + length);
    var tensors = ImmutableMap.<String, HostTensor>builder();
    var ranges = new ArrayList<Range>();
    for (var entry : header.properties()) {
      if (!entry.getKey().equals("__metadata__")) {
        tensors.put(entry.getKey(), tensor(entry.getKey(), entry.getValue(), data, ranges));
      }
    }
    checkRanges(ranges, data.byteSize());
    return tensors.buildOrThrow();
  }

  private record Range(String name, long begin, long end) {}

  private JsonNode header(MemorySegment bytes) {
    String text;
    try {
      text = StandardCharsets.UTF_8.newDecoder().decode(bytes.asByteBuffer()).toString();
    } catch (CharacterCodingException e) {
      throw wrong("its header is not UTF-8");
    }
    try {
      var root =
          JsonMapper.builder()
              .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
              .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
              .build()
              .readTree(text);
      if (root == null || !root.isObject()) {
        throw wrong("its header is not a JSON object");
      }
      return root;
    } catch (JsonProcessingException e) {
      throw wrong("its header is not JSON: " + e.getOriginalMessage());
    }
  }

  private HostTensor tensor(String name, JsonNode node, MemorySegment data, List<Range> ranges) {
    var typeName = node.path("dtype").asText();
    @Nullable DType dtype = DTYPES.get(typeName);
    if (dtype == null) {
      throw wrong("tensor '%s' has the unknown dtype '%s'".formatted(name, typeName));
    }
    var sizes = longs(name, node.path("shape"), "shape");
    var range = longs(name, node.path("data_offsets"), "data_offsets");
    TensorType type;
    try {
      type = TensorType.contiguous(dtype, sizes);
    } catch (IllegalArgumentException e) {
      throw wrong("tensor '%s': %s".formatted(name, e.getMessage()));
    }
    if (range.length() != 2 || range.get(0) > range.get(1) || range.get(1) > data.byteSize()) {
      throw wrong(
          "tensor '%s' is at bytes %s of %d; is the file truncated?"
              .formatted(name, range, data.byteSize()));
    }
    long begin = range.get(0);
    long bytes = range.get(1) - begin;
    if (bytes != type.bytes()) {
      throw wrong(
          "tensor '%s' is %s, which takes %d bytes, but has %d"
              .formatted(name, type, type.bytes(), bytes));
    }
    ranges.add(new Range(name, begin, range.get(1)));
    return new HostTensor(data.asSlice(begin, bytes), type);
  }

  private ImmutableLongArray longs(String name, JsonNode node, String field) {
    if (!node.isArray()) {
      throw wrong("tensor '%s' has no %s".formatted(name, field));
    }
    var values = ImmutableLongArray.builder();
    for (var item : node) {
      if (!item.isIntegralNumber() || !item.canConvertToLong() || item.longValue() < 0) {
        throw wrong("the %s of tensor '%s' is %s".formatted(field, name, node));
      }
      values.add(item.longValue());
    }
    return values.build();
  }

  private void checkRanges(List<Range> ranges, long size) {
    ranges.sort(Comparator.comparingLong(Range::begin).thenComparingLong(Range::end));
    long end = 0;
    for (var range : ranges) {
      if (range.begin() != end) {
        throw wrong(
            "tensor '%s' begins at byte %d, the one before ends at %d"
                .formatted(range.name(), range.begin(), end));
      }
      end = range.end();
    }
    if (end != size) {
      throw wrong("its tensors end at byte %d, but its data at %d".formatted(end, size));
    }
  }

  private CompileException wrong(String message) {
    return wrong(DiagnosticCode.BAD_TENSORS, message, "");
  }

  private CompileException wrong(DiagnosticCode code, String message, String hint) {
    return CompileException.ofFile(code, file, message, hint);
  }

  /** {@return whether the format can hold a type} */
  public static boolean canHold(DType dtype) {
    return DTYPES.containsValue(dtype);
  }

  /**
   * Writes tensors, whole or not at all; the same tensors give the same bytes.
   *
   * @throws CompileException when the file cannot be written
   */
  public static void write(Path file, Map<String, HostTensor> tensors) {
    var writer = new Safetensors(file);
    try {
      var partial = Files.createTempFile(file.toAbsolutePath().getParent(), ".tensors", ".tmp");
      try {
        writer.write(partial, ImmutableSortedMap.copyOf(tensors));
        Files.move(partial, file, StandardCopyOption.REPLACE_EXISTING);
      } finally {
        Files.deleteIfExists(partial);
      }
    } catch (IOException e) {
      throw writer.wrong(
          DiagnosticCode.UNREADABLE_FILE,
          "it cannot be written",
          "choose a folder that exists and that you may write to");
    }
  }

  private void write(Path partial, ImmutableSortedMap<String, HostTensor> tensors)
      throws IOException {
    var header = new ByteArrayOutputStream();
    long end = 0;
    try (var json = new JsonFactory().createGenerator(header)) {
      json.writeStartObject();
      for (var entry : tensors.entrySet()) {
        var type = entry.getValue().type();
        json.writeObjectFieldStart(entry.getKey());
        json.writeStringField(
            "dtype",
            Optional.ofNullable(DTYPES.inverse().get(type.dtype()))
                .orElseThrow(() -> new IOException("the format has no " + type.dtype())));
        json.writeArrayFieldStart("shape");
        for (long size : type.sizes().asList()) {
          json.writeNumber(size);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("data_offsets");
        json.writeNumber(end);
        end += type.bytes();
        json.writeNumber(end);
        json.writeEndArray();
        json.writeEndObject();
      }
      json.writeEndObject();
    }
    while (header.size() % Long.BYTES != 0) {
      header.write(' ');
    }
    try (var channel = FileChannel.open(partial, StandardOpenOption.WRITE)) {
      var length = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      writeAll(channel, length.putLong(header.size()).flip());
      writeAll(channel, ByteBuffer.wrap(header.toByteArray()));
      for (var tensor : tensors.values()) {
        writeTensor(channel, tensor.contiguous());
      }
    }
  }

  private static void writeTensor(FileChannel channel, HostTensor tensor) throws IOException {
    long bytes = tensor.type().bytes();
    for (long at = 0; at < bytes; at += Integer.MAX_VALUE / 2) {
      long part = Math.min(bytes - at, Integer.MAX_VALUE / 2);
      writeAll(channel, tensor.memory().asSlice(at, part).asByteBuffer());
    }
  }

  private static void writeAll(FileChannel channel, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
  }
}
