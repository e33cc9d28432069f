import { assertEquals } from "@std/assert";
import { createLog } from "../../lib/cli/log.ts";

Deno.test("the log writes one JSON object per line, whatever is in an entry", () => {
  const lines: string[] = [];
  const log = createLog({ write: (line) => void lines.push(line), now: () => 0 });
  log({ level: "warn", event: "a\nb", path: "\u001b[31m\r\n" });
  assertEquals(lines.length, 1);
  assertEquals(lines[0]?.indexOf("\n"), (lines[0]?.length ?? 0) - 1);
  assertEquals(JSON.parse(lines[0] ?? ""), {
    time: "1970-01-01T00:00:00.000Z",
    level: "warn",
    event: "a\nb",
    path: "\u001b[31m\r\n",
  });
});
