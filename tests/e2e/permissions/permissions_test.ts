import { assertEquals } from "@std/assert";
import { startUpstream } from "../../upstream/mod.ts";
import { compile, type CompileOptions, obstacle } from "../../support/compiling.ts";

const PROBE = new URL("probe.ts", import.meta.url).pathname;
/** Expected outcomes of attempts that are not denied like all others. */
const OUTCOMES: Readonly<Record<string, string>> = {
  "read the configuration": "done",
  "write the store": "done",
  "connect to a socket beside the store": "done",
  "run a string by node": "done",
  "import a string": "done",
  "evaluate a string": "EvalError",
  "make a function of a string": "EvalError",
  "run a program by node": "NotFound",
  "import over the network": "TypeError",
  "connect to 127.0.0.1": "done",
};

/** Addresses where clouds give credentials to any program on the machine. */
const METADATA = [
  ...["169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "100.100.100.200"],
  ...["fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "168.63.129.16", "192.0.0.192"],
  "metadata.google.internal",
];

/** Compiles the probe with the flags of the gateway, and runs it in a folder as a gateway would be. */
async function probe(flags: CompileOptions["flags"], addresses: string[]): Promise<Record<string, string>> {
  await using code = startUpstream(() => ({ headers: { "content-type": "text/javascript" }, body: "export {};" }));
  const [folder, elsewhere] = [await Deno.makeTempDir(), await Deno.makeTempDir()];
  try {
    const executable = await compile(folder, { entry: PROBE, ...(flags !== undefined && { flags }) });
    await Deno.mkdir(`${folder}/data`);
    await Deno.writeTextFile(`${folder}/allowed.txt`, "");
    await Deno.writeTextFile(`${elsewhere}/outside.txt`, "secret");
    await Deno.writeTextFile(`${elsewhere}/addon.node`, "");
    const { stdout, stderr } = await new Deno.Command(executable, {
      args: [`${elsewhere}/outside.txt`, Deno.execPath(), `${code.url}/code.js`, ...addresses],
      cwd: folder,
      stdin: "null",
    }).output();
    assertEquals(code.requests.length, 0);
    const text = new TextDecoder().decode(stdout);
    return text === "" ? { failed: new TextDecoder().decode(stderr) } : JSON.parse(text);
  } finally {
    for (const path of [folder, elsewhere]) await Deno.remove(path, { recursive: true });
  }
}

Deno.test({
  name: "an executable with the gateway's permissions cannot run, load, evaluate, read or write anything else",
  ignore: obstacle !== undefined,
  async fn() {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const found = await probe(undefined, [`127.0.0.1 ${listener.addr.port}`, ...METADATA.map((host) => `${host} 80`)]);
    assertEquals(Object.keys(found).length, 28 + METADATA.length);
    for (const [what, outcome] of Object.entries(found)) {
      assertEquals([what, outcome], [what, OUTCOMES[what] ?? "NotCapable"]);
    }
  },
});

Deno.test({
  name: "an executable made with a list of hosts connects to no other, whatever its configuration says",
  ignore: obstacle !== undefined,
  async fn() {
    using listener = Deno.listen({ hostname: "0.0.0.0", port: 0 });
    const { port } = listener.addr;
    const found = await probe({ "--allow-net": `--allow-net=127.0.0.1:${port}` }, [
      `127.0.0.1 ${port}`,
      `127.0.0.2 ${port}`,
      "169.254.169.254 80",
      `localhost ${port}`,
    ]);
    assertEquals(Object.entries(found).filter(([what]) => /^connect to (?!a socket)/.test(what)), [
      ["connect to 127.0.0.1", "done"],
      ["connect to 127.0.0.2", "NotCapable"],
      ["connect to 169.254.169.254", "NotCapable"],
      ["connect to localhost", "NotCapable"],
    ]);
  },
});
