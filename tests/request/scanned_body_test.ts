/** Requests that are relayed as they are: a scan recognizes their messages, and nothing parses them. */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { CLIENT_CODECS } from "../../lib/protocols/client_codecs.ts";
import { groupSchema } from "../../lib/config.ts";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { serve } from "../../lib/request/serve.ts";
import { type JsonBody, parseBody } from "../../lib/server/parse_body.ts";
import { createClientTracker } from "../../lib/server/client_tracker.ts";
import { createDrain } from "../../lib/server/drain.ts";
import type { RouteContext } from "../../lib/server/router.ts";
import { NO_BODY } from "../support/no_body.ts";
import { oneModel, startGateway, type TestGateway } from "../support/gateway.ts";
import { events, json, startUpstream } from "../upstream/mod.ts";
import { prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../upstream/replies.ts";

/** Serves one request. @returns the answer, and whether its body was parsed */
async function ask(protocol: Protocol, { gateway, key }: TestGateway, asked: JsonObject): Promise<[string, boolean]> {
  const sent = JSON.stringify(asked);
  let body: JsonBody | undefined;
  let isParsed = false;
  const context: RouteContext = {
    gateway,
    record: gateway.observer.began({ id: "r", method: "POST" }, { log: () => {}, logged: "none", probes: true }),
    requestId: "r",
    params: {},
    caller: { keyId: key.id, keyName: "test", groupName: "default", group: groupSchema.parse({}), rules: {} },
    session: undefined,
    answerHeaders: [],
    head: new Headers(),
    info: undefined,
    clients: createClientTracker(gateway),
    timers: new PhaseTimers(),
    drain: createDrain(),
    async readJson(scan) {
      body = await parseBody(new TextEncoder().encode(sent), scan);
      const { value } = await parseBody(new TextEncoder().encode(sent));
      Object.defineProperty(body, "value", {
        get() {
          isParsed = true;
          return value;
        },
      });
      return body;
    },
    body: NO_BODY,
  };
  const request = new Request("http://localhost/", {
    method: "POST",
    headers: { "anthropic-version": "2023-06-01" },
    body: sent,
  });
  const answer = await (await serve(CLIENT_CODECS[protocol], request, context)).text();
  assert(body?.scanned !== undefined);
  return [answer, isParsed];
}

for (const protocol of PROTOCOLS.filter((protocol) => CLIENT_CODECS[protocol].plain !== undefined)) {
  Deno.test(`${protocol}: the messages of a relayed request are never parsed`, async () => {
    await using upstream = startUpstream(({ body }) =>
      body.includes('"stream":true') ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol])
    );
    await using gateway = startGateway(oneModel(protocol, upstream.url));
    const [whole, ofWhole] = await ask(protocol, gateway, prompt(protocol));
    const [stream, ofStream] = await ask(protocol, gateway, prompt(protocol, { stream: true }));
    assert(whole.includes("Hello") && stream.includes(SUCCESS[protocol]), whole + stream);
    assertEquals([ofWhole, ofStream], [false, false]);
  });
}
