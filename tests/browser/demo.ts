/** Runs the demo in a separate process, because the product has another import map than these tests. */
const ROOT = `${import.meta.dirname}/../..`;

/** A gateway with a month of traffic. Only the test sends requests to it. */
export interface RunningDemo extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** The folder of its configuration and its store. */
  readonly folder: string;
  readonly adminKey: string;
  readonly viewerKey: string;
  /** Address that signs in once. */
  readonly signInLink: string;
  /** Secrets of its keys by name. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** Starts the demo on a free port. */
export async function startDemo(): Promise<RunningDemo> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "--config", `${ROOT}/deno.json`, "demo", "--port=0", "--still", "--json"],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  let line = "";
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  while (!line.endsWith("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error("The demo did not start");
    line += value;
  }
  return {
    ...JSON.parse(line),
    async [Symbol.asyncDispose]() {
      child.kill("SIGINT");
      await reader.cancel();
      await child.status;
    },
  };
}
