import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import denoJson from "../../../deno.json" with { type: "json" };
import { compile, obstacle } from "../../support/compiling.ts";

/** An executable in its folder. */
function program(executable: string, folder: string) {
  function command(args: readonly string[]): Deno.Command {
    return new Deno.Command(executable, {
      args: [...args],
      cwd: folder,
      env: { ADMIN_KEY, SLUICE_CONFIG: "", SLUICE_PORT: "", SLUICE_HOSTNAME: "", SLUICE_STORE: "", NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }

  async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const { code, stdout, stderr } = await command(args).output();
    return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
  }

  /** Serves until the given work is done; returns the exit code. */
  async function serve(work: (banner: string, origin: string) => Promise<void>): Promise<number> {
    const child = command(["serve", "--port", "0"]).spawn();
    const err = new Response(child.stderr).text();
    const out = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let banner = "";
    let read = await out.read();
    for (; !read.done; read = await out.read()) {
      banner += read.value;
      if (/Add a key: .*\n/.test(banner)) break;
    }
    if (read.done) throw new Error(`The executable did not start:\n${banner}${await err}`);
    try {
      await work(banner, /listens on (\S+)/.exec(banner)?.[1] ?? "");
    } finally {
      child.kill("SIGTERM");
      while (!(await out.read()).done);
      await err;
    }
    return (await child.status).code;
  }

  return { run, serve };
}

function keyIn(text: string): string {
  return /sk-sluice-[A-Za-z0-9_-]{49}/.exec(text)?.[0] ?? "";
}

const ADMIN_KEY = "admin-key-of-the-executable";

/** Pages of the console, with a text of each. */
const PAGES: Readonly<Record<string, RegExp>> = {
  "": /<h1>Overview/,
  "/requests": /<h1>Requests/,
  "/keys": /<h1>Keys/,
  "/groups": /<h1>Groups/,
  "/budgets": /<h1>Budgets/,
  "/models": /sluice\/echo/,
  "/usage": /<h1>Usage/,
  "/playground": /<h1>Playground/,
  "/connect": /ANTHROPIC_BASE_URL/,
  "/node": /<h1>Nodes/,
  "/configuration": /<h1>Configuration/,
  "/changes": /sign in/,
  "/assets/console.css": /--accent/,
  "/assets/console.js": /\w/,
};

/** Signs in to the console, loads every page, and sends a request from the playground. */
async function useConsole(origin: string): Promise<void> {
  const console = `${origin}/admin/console`;
  const post = (path: string, fields: Record<string, string>, cookie = "") =>
    fetch(`${console}${path}`, {
      method: "POST",
      headers: { origin, cookie },
      body: new URLSearchParams(fields),
      redirect: "manual",
    });
  const signedIn = await post("/sign-in", { key: ADMIN_KEY });
  await signedIn.body?.cancel();
  const [cookie = ""] = signedIn.headers.get("set-cookie")?.split(";") ?? [];
  const load = async (path: string) => await (await fetch(`${console}${path}`, { headers: { cookie } })).text();
  for (const [path, text] of Object.entries(PAGES)) assertMatch(await load(path), text);
  const [, csrf = ""] = /name="csrf" value="([^"]+)"/.exec(await load("/playground")) ?? [];
  const fields = { csrf, key: "default", endpoint: "chat", model: "sluice/echo", prompt: "Hello", action: "send" };
  assertMatch(await (await post("/playground", fields, cookie)).text(), /class="answer"[^>]*>Hello</);
}

/** A name that this library, which is under the GPL, leaves in what contains it. */
const NAME_IN_LIBIMAGEQUANT = "liq_attr";

/** The smallest size: larger ones take longer to paint. */
const SIZE = "1024x640";

const HELLO = { model: "sluice/echo", messages: [{ role: "user", content: "Hello" }] };
const REQUESTS: [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", HELLO],
  ["/v1/responses", { model: "sluice/echo", input: "Hello" }],
  ["/anthropic/v1/messages", { ...HELLO, max_tokens: 10 }],
];

async function ask(origin: string, key: string, [path, body]: (typeof REQUESTS)[number]): Promise<string> {
  const response = await fetch(`${origin}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assertEquals(response.status, 200, text);
  return text;
}

async function image(url: string, init: RequestInit): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url, { method: "POST", ...init });
  const text = await response.text();
  assertEquals(response.status, 200, text.slice(0, 1000));
  return Uint8Array.from(atob(JSON.parse(text).data[0].b64_json), (char) => char.charCodeAt(0));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

Deno.test("the executable alone in a folder is the whole gateway", { ignore: obstacle !== undefined }, async (test) => {
  const folder = await Deno.makeTempDir();
  try {
    const executable = await compile(folder);
    const { run, serve } = program(executable, folder);

    await test.step("it contains no GPL encoder", async () => {
      const text = new TextDecoder("latin1").decode(await Deno.readFile(executable));
      assertEquals([text.includes(NAME_IN_LIBIMAGEQUANT), text.includes("mozjpeg_enc")], [false, true]);
    });

    await test.step("it answers in every protocol", async () => {
      const key = keyIn((await run("keys", "add", "default")).out);
      const code = await serve(async (_banner, origin) => {
        for (const request of REQUESTS) {
          assertMatch(await ask(origin, key, request), /"(text|content)":"Hello"/);
        }
        const [[path, body] = ["", {}]] = REQUESTS;
        assert((await ask(origin, key, [path, { ...body, stream: true }])).endsWith("data: [DONE]\n\n"));
      });
      assertEquals(code, 0);
    });

    await test.step("it paints in every format, and edits an upload", async () => {
      const code = await serve(async (_banner, origin) => {
        const { out: added } = await run("keys", "add", "painter");
        const headers = { authorization: `Bearer ${keyIn(added)}` };
        const images: Record<string, Uint8Array<ArrayBuffer>> = {};
        for (const [format, magic] of [["png", "89504e47"], ["jpeg", "ffd8ff"], ["webp", "52494646"]] as const) {
          const body = {
            model: "sluice/canvas",
            prompt: "a red fox",
            quality: "low",
            size: SIZE,
            output_format: format,
          };
          images[format] = await image(`${origin}/v1/images/generations`, {
            headers: { ...headers, "content-type": "application/json" },
            body: JSON.stringify(body),
          });
          assertEquals(hex(images[format]).slice(0, magic.length), magic, format);
        }
        const form = new FormData();
        for (
          const [name, value] of [["model", "sluice/canvas"], ["prompt", "blur it"], ["quality", "low"], [
            "size",
            SIZE,
          ]] as const
        ) {
          form.append(name, value);
        }
        for (const format of ["png", "jpeg", "webp"]) {
          form.append(
            "image",
            new File([images[format] ?? new Uint8Array(0)], format, { type: `image/${format}` }),
          );
        }
        const edited = await image(`${origin}/v1/images/edits`, { headers, body: form });
        assertEquals(hex(edited).slice(0, 8), "89504e47");
      });
      assertEquals(code, 0);
      await run("keys", "revoke", "painter");
    });

    await test.step("keys are created and listed, and work at the next start", async () => {
      const added = await run("keys", "add", "ci");
      assertEquals([added.code, added.out], [0, `${keyIn(added.out)}\n`], added.err);
      assertMatch((await run("keys", "list")).out, /^ID .*\n.* default .*\n.* painter .*\n.* ci .*\n$/);
      const code = await serve(async (banner, origin) => {
        assertEquals(keyIn(banner), "");
        assertStringIncludes(banner, 'API key "default" exists since');
        assertMatch(banner, /Add a key: cd \S+ && sluice keys add NAME/);
        for (const request of REQUESTS) await ask(origin, keyIn(added.out), request);
      });
      assertEquals(code, 0);
    });

    await test.step("it reads and writes only its folders", async () => {
      const outside = await Deno.makeTempFile();
      await Deno.writeTextFile(outside, "{}");
      const cases: [string[], RegExp][] = [
        [["check", "--config", outside], /^Cannot read the configuration ".+": this executable may not read/],
        [
          ["check", "--config", "/etc/hostname"],
          /^Cannot read the configuration "\/etc\/hostname": this executable may not read/,
        ],
        [
          ["keys", "list", "--store", `sqlite:${outside}.db`],
          /^Cannot open the store ".+": this executable may not read/,
        ],
        [
          ["keys", "add", "ci", "--store", "sqlite:./keys.db"],
          /^Cannot open the store ".+": this executable may not write/,
        ],
      ];
      for (const [args, line] of cases) {
        const { code, out, err } = await run(...args);
        assertEquals([code, out, err.trimEnd().split("\n").length], [1, "", 1], err);
        assertMatch(err, line);
      }
      await Deno.remove(outside);
    });

    await test.step("it has the console, with its pages, styles and scripts", async () => {
      const config = `${folder}/sluice.jsonc`;
      await Deno.writeTextFile(config, '{ "admin": { "key": { "env": "ADMIN_KEY" } } }');
      try {
        assertEquals(await serve((_banner, origin) => useConsole(origin)), 0);
      } finally {
        await Deno.remove(config);
      }
    });

    await test.step("it leaves only its data", async () => {
      const entries = await Array.fromAsync(Deno.readDir(folder));
      assertEquals(entries.map(({ name }) => name).sort(), ["data", "sluice"]);
      assertEquals((await run("version")).out, `sluice ${denoJson.version}\n`);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
