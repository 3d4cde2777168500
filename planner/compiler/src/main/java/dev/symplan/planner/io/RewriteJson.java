package dev.symplan.planner.io;

import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.base.Ascii;
import dev.symplan.planner.plan.Rewrite;
import java.io.IOException;

/** The rewrites of the source's collectives in a plan file. */
final class RewriteJson {
  private RewriteJson() {}

  static void write(JsonGenerator json, Rewrite rewrite) throws IOException {
    json.writeStartObject();
    json.writeStringField("action", rewrite.action().text());
    json.writeArrayFieldStart("parts");
    for (var part : rewrite.members()) {
      json.writeStartObject();
      json.writeStringField("name", part.name());
      json.writeStringField("source", part.source());
      json.writeNumberField("bytes", part.bytes());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeNumberField("pieces", rewrite.pieces());
    json.writeStringField("reason", Ascii.toLowerCase(rewrite.reason().name()));
    json.writeStringField("detail", rewrite.detail());
    json.writeNumberField("before_us", rewrite.beforeMicros());
    json.writeNumberField("after_us", rewrite.afterMicros());
    json.writeEndObject();
  }
}
