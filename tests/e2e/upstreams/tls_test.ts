import { assert, assertEquals } from "@std/assert";
import { STREAMED } from "../../upstream/replies.ts";
import { events, startUpstream } from "../../upstream/mod.ts";

const FILES = new URL("../../fixtures/tls/", import.meta.url);
const TLS = {
  cert: await Deno.readTextFile(new URL("server.pem", FILES)),
  key: await Deno.readTextFile(new URL("server.key", FILES)),
};

/** More streams than the hundred that a connection of HTTP/2 usually has. */
const STREAMS = 120;

/** Runs the gateway with the test's own authority, and returns how many of the requested streams began. */
async function startStreams(url: string, count: number): Promise<{ started: number; ms: number }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "-A",
      new URL("tls_gateway.ts", import.meta.url).pathname,
      url,
      String(count),
    ],
    env: { DENO_CERT: new URL("ca.pem", FILES).pathname, NO_COLOR: "1" },
    cwd: new URL("../../..", import.meta.url),
  }).output();
  assertEquals(code, 0, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("120 streams to one TLS upstream with HTTP/2 run concurrently", async () => {
  const never = Promise.withResolvers<void>();
  const first = new TextEncoder().encode(STREAMED.chat.slice(0, 2).join("")).length;
  // No stream ends before all have begun: with a limit of streams per connection, some would wait forever.
  await using server = startUpstream(
    () => events(STREAMED.chat.join(""), { chunkBytes: first, beforeLast: never.promise }),
    TLS,
  );
  const { started, ms } = await startStreams(server.url, STREAMS);
  assertEquals(started, STREAMS);
  // One connection per stream: HTTP/2 was not used.
  assertEquals(server.ports.size, STREAMS);
  assert(ms < 60_000, `${ms} ms`);
  never.resolve();
});
