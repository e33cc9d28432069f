import { assertEquals } from "@std/assert";
import { GatewayError } from "../lib/errors.ts";
import { contentFilter, redactSecrets, redactShapes, redactWholeSecrets } from "../lib/redact.ts";
import { rememberEnvironment, rememberSecret, Secret } from "../lib/secret.ts";

const KEY = "token-xyz789/very+private=5";
new Secret(KEY);

function escapeAll(text: string, write: (code: number) => string): string {
  return [...text].map((letter) => write(letter.charCodeAt(0))).join("");
}

const hex = (code: number) => code.toString(16).padStart(2, "0");

Deno.test("redact() removes a secret in every spelling", () => {
  const spellings: readonly [name: string, text: string][] = [
    ["as it is", KEY],
    ["with a scheme", `Bearer ${KEY}`],
    ["in a URL", encodeURIComponent(KEY)],
    ["in a URL, twice", encodeURIComponent(encodeURIComponent(KEY))],
    ["in a URL, every letter", escapeAll(KEY, (code) => `%${hex(code)}`)],
    ["in JSON, some letters", KEY.replace("t", "\\u0074").replaceAll("/", "\\/")],
    ["in JSON, every letter", escapeAll(KEY, (code) => `\\u00${hex(code)}`)],
    ["in JSON within JSON", JSON.stringify(JSON.stringify(KEY.replaceAll("/", "\\/")))],
    ["in HTML", escapeAll(KEY, (code) => `&#${code};`)],
    ["in hexadecimal HTML", escapeAll(KEY, (code) => `&#x${hex(code)};`)],
    ["in base64", btoa(KEY)],
    ["in base64 for URLs", btoa(KEY).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")],
    ["as the password of Basic", `Basic ${btoa(`:${KEY}`)}`],
    ["behind a name of two letters", `Basic ${btoa(`me:${KEY}`)}`],
    ["behind a name of three letters", `Basic ${btoa(`you:${KEY}`)}`],
  ];
  for (const [name, text] of spellings) {
    for (const redact of [redactSecrets, redactWholeSecrets]) {
      const clean = redact(`Refused "${text}" today`);
      assertEquals(clean.startsWith("Refused ") && clean.endsWith(" today"), true, `${name}: ${clean}`);
      assertEquals(clean.includes("[key]"), true, `${name}: ${clean}`);
      // Remaining base64 may only be characters that also depend on the surrounding text.
      assertEquals(/xyz789|private|[\w+/%&#\\]{14,}/.test(clean), false, `${name}: ${clean}`);
    }
  }
});

Deno.test("redact() removes prefixes of more than eight characters", () => {
  const cases: [string, string][] = [
    ["wrong: token-xyz", "wrong: [key]"],
    ["wrong: token-xyz789***", "wrong: [key]"],
    ["wrong: token-xyz7...9", "wrong: [key]"],
    ["wrong: token-xyz789/ver, sorry", "wrong: [key], sorry"],
    ["wrong: token-xy", "wrong: token-xy"],
    ["wrong: token-xzz789", "wrong: token-xzz789"],
    [`wrong: ${btoa("token-xyz789")}`, "wrong: [key]"],
    [`both ${KEY} and token-xyz789`, "both [key] and [key]"],
  ];
  for (const [text, expected] of cases) assertEquals(redactSecrets(text), expected);
  assertEquals(redactWholeSecrets("token-xyz789 is a name"), "token-xyz789 is a name");
});

Deno.test("redactWholeSecrets() keeps JSON valid", () => {
  const json = (tag: string) => JSON.stringify([tag, 'quoted "words"', "C:\\new", "&amp;lt;"]);
  assertEquals(redactWholeSecrets(json(KEY)), json("[key]"));
});

Deno.test("redact() cleans every member of an error", () => {
  const error = new GatewayError("invalid", `No ${KEY}`, {
    param: `headers.${KEY}`,
    code: KEY,
    headers: { "x-upstream": `Bearer ${KEY}` },
  }).with({ final: true });
  const { message, param, code, headers } = error;
  assertEquals({ message, param, code, headers }, {
    message: "No [key]",
    param: "headers.[key]",
    code: undefined,
    headers: { "x-upstream": "Bearer [key]" },
  });
});

Deno.test("of an address only the password is secret, even a short one", () => {
  rememberSecret("postgres://sluice:hunter2@db.test/sluice");
  rememberSecret("redis://:p%40ss-word-77@cache.test");
  assertEquals(redactWholeSecrets("postgres://sluice:hunter2@db.test/sluice"), "postgres://sluice[key]db.test/sluice");
  assertEquals(redactWholeSecrets("sluice at db.test: hunter2"), "sluice at db.test: hunter2");
  assertEquals(redactWholeSecrets("p@ss-word-77 and p%40ss-word-77"), "[key] and [key]");
});

Deno.test("secrets of the environment are known: proxies, exporters, Postgres", () => {
  const env: Record<string, string> = {
    https_proxy: "http://user:proxy-pass-31@proxy.test:3128",
    HTTP_PROXY: "user:other-pass-32@proxy.test",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=acme,authorization=Bearer%20otlp-token-33",
    PGPASSWORD: "postgres-pass-34",
  };
  rememberEnvironment((name) => env[name]);
  for (const secret of ["proxy-pass-31", "other-pass-32", "otlp-token-33", "postgres-pass-34"]) {
    assertEquals(redactWholeSecrets(`It said ${secret}.`), "It said [key].");
  }
  assertEquals(redactWholeSecrets("acme"), "acme");
});

Deno.test("a secret that is read again stays known, however many others were rotated since it was first read", () => {
  for (let round = 0; round < 2; round++) {
    new Secret("still-in-use-0000");
    for (let index = 0; index < 600; index++) new Secret(`rotated-${round}-${index}-key`);
  }
  assertEquals(redactWholeSecrets("still-in-use-0000 rotated-0-0-key"), "[key] rotated-0-0-key");
});

Deno.test("redactShapes() removes keys and addresses, and keeps the client's ids", () => {
  const cases: [string, string][] = [
    ["use sk-proj-abcdef", "use [key]"],
    ["Authorization: Basic dXNlcjpwYXNz1=", "Authorization: [key]"],
    ["basic authentication is not supported", "basic authentication is not supported"],
    ["0123456789abcdef0123456789abcdef", "[key]"],
    ["No response resp_0123456789abcdef0123456789abcdef", "No response resp_0123456789abcdef0123456789abcdef"],
    ["connect to wss://gpu7.internal/a", "connect to [address]"],
    ["two\nlines\u009b\u0000", "two lines"],
  ];
  for (const [text, expected] of cases) assertEquals(redactShapes(text, 1_000), expected);
});

Deno.test("redactShapes() removes whole keys from model output, and no ordinary words", () => {
  const filter = contentFilter(new Secret(KEY));
  assertEquals(filter?.(`{"content":"${KEY} and token-xyz789/very"}`), '{"content":"[key] and token-xyz789/very"}');
  assertEquals(filter?.(`{"a":"${KEY.replaceAll("/", "\\/")}"}`), '{"a":"[key]"}');
  assertEquals(filter?.(`?key=${encodeURIComponent(KEY)}`), "?key=[key]");
  const words = ["test", "none", "ollama", "sk-local-1", "no-key-required", "not-needed", "placeholder"];
  for (const word of words) assertEquals(contentFilter(new Secret(word)), undefined, word);
  for (const key of ["token-abc123", "0123456789abcdef", "correct-horse-battery-staple", "gsk_AbCdEfGhIj"]) {
    assertEquals(contentFilter(new Secret(key))?.(key), "[key]");
  }
  assertEquals(contentFilter(undefined), undefined);
});
