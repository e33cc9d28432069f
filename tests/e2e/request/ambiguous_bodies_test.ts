import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { type Random, seeded } from "../../support/random.ts";
import { model, startGateway, upstream, VENDORS } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { rounds } from "../../support/skip.ts";

/*
 * The gateway checks a body (may the key use the model, what does it cost), and the upstream reads it again. If two
 * parsers could read a body differently, an attacker could show each of them a different request. So every ambiguous
 * body must be rejected, or forwarded with a single meaning.
 */

/** Requests of each protocol. */
const REQUESTS = rounds(600);
const SEED = Number(Deno.env.get("SEED") ?? 1);

/** Members that may appear in another notation, or more than once, with differing values. */
const OTHERS: Readonly<Record<string, readonly unknown[]>> = {
  model: ["acme/dear", "acme/one", "real-dear", "ACME/ONE", "acme/one ", "", null, ["acme/dear"], { id: "acme/dear" }],
  max_tokens: [1, 5_000, 1e9],
  max_output_tokens: [16, 5_000],
  stream: [true, false],
  n: [1, 2],
};

/** A member as it is written. */
type Member = [name: string, value: string];

/** A name or a text with some of its characters written as escapes. */
function spelled(text: string, random: Random): string {
  const characters = [...text].map((character) => {
    if (!random.chance(0.15)) return JSON.stringify(character).slice(1, -1);
    const code = character.charCodeAt(0).toString(16).padStart(4, "0");
    return `\\u${random.chance(0.5) ? code : code.toUpperCase()}`;
  });
  return `"${characters.join("")}"`;
}

function valueOf(value: unknown, random: Random): string {
  return typeof value === "string" && random.chance(0.4) ? spelled(value, random) : JSON.stringify(value);
}

/** The body of a request in one of very many spellings. */
function bodyOf(protocol: Protocol, random: Random): string {
  const members: Member[] = Object.entries(prompt(protocol)).map(([name, value]) => [
    random.chance(0.3) ? spelled(name, random) : JSON.stringify(name),
    valueOf(value, random),
  ]);
  for (let more = random.below(3); more > 0; more--) {
    const name = random.pick(Object.keys(OTHERS));
    const written = random.chance(0.5) ? spelled(name, random) : JSON.stringify(name);
    const place = random.below(members.length + 1);
    members.splice(place, 0, [written, valueOf(random.pick(OTHERS[name] ?? []), random)]);
  }
  // Members that only resemble the relevant ones.
  if (random.chance(0.3)) members.splice(random.below(members.length), 0, ['"Model"', '"acme/dear"']);
  if (random.chance(0.3)) members.push(['"metadata"', '{"model":"acme/dear","max_tokens":"9"}']);
  if (random.chance(0.2)) members.push(['"__proto__"', '{"model":"acme/dear"}']);
  if (random.chance(0.1)) members.push(['"model\\u0000"', '"acme/dear"']);
  if (random.chance(0.1)) members.push(['"constructor"', '{"prototype":{"model":"acme/dear"}}']);
  const space = () => random.pick(["", "", "", " ", "\n", "\t", "\r\n  "]);
  const text = members.map(([name, value]) => `${space()}${name}${space()}:${space()}${value}${space()}`).join(",");
  return `${random.chance(0.05) ? "\ufeff" : ""}${space()}{${text}}${space()}`;
}

/** All values of a member at the top of a body, as they are written. The bodies here have no objects but whole members. */
function valuesOf(body: string, name: string): unknown[] {
  const found: unknown[] = [];
  let depth = 0;
  for (const [token] of body.matchAll(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && token.endsWith(":") && JSON.parse(token.slice(0, -1)) === name) found.push(token);
  }
  return found;
}

Deno.test(`the members that are checked are those that are sent, however they are spelled, SEED=${SEED}`, async () => {
  const random = seeded(SEED);
  // Gemini's protocol has the model and the streaming mode in the path.
  for (const protocol of PROTOCOLS.filter((protocol) => protocol !== "gemini")) {
    const bodies: string[] = [];
    await using server = startUpstream(({ body }) => {
      bodies.push(body);
      return JSON.parse(body).stream === true ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol]);
    });
    await using gateway = startGateway({
      upstreams: { one: upstream(VENDORS[protocol], server.url, { protocols: [protocol] }) },
      models: ["one", "dear"].map((name) =>
        model(`acme/${name}`, [{ upstream: "one", model: `real-${name}` }], {
          pricing: { prompt: name === "dear" ? "1" : "0.000001", completion: "0.000001" },
        })
      ),
    });
    const key = await gateway.addKey({ rules: { models: ["acme/one"] } });
    let served = 0;
    for (let number = 0; number < REQUESTS; number++) {
      const body = bodyOf(protocol, random);
      bodies.length = 0;
      const response = await gateway.ask(protocol, body, { key });
      const text = await response.text();
      const about = `${protocol} ${number}: ${body}`;
      assert(response.status < 500, `${response.status} ${text}: ${about}`);
      if (response.status >= 400) {
        assertEquals(bodies, [], about);
        continue;
      }
      served++;
      const [forwarded = ""] = bodies;
      assertEquals(bodies.length, 1, about);
      for (const name of [...Object.keys(OTHERS), "messages", "input"]) {
        assert(valuesOf(forwarded, name).length <= 1, `${name} went on twice: ${forwarded}`);
      }
      assertEquals(valuesOf(body, "model").length, 1, about);
      assertEquals(JSON.parse(forwarded).model, "real-one", about);
    }
    assert(served > REQUESTS / 20, `${protocol}: only ${served} were served`);
    await gateway.gateway.ledger.flush();
    const sums = await gateway.store.ledger.usage({ since: 0, until: 1, by: "model" });
    assertEquals(sums.filter(({ cost }) => cost > 0n).map(({ name }) => name), ["acme/one"]);
  }
});
