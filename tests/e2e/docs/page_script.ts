/** Turns a page of the documentation into a shell script that runs the reader's commands. */
import type { CodeBlock, Page } from "../../../tools/markdown.ts";
import { consoleCommands } from "../../support/documents.ts";

/** Environment of a page's script. */
export interface ScriptPlace {
  /** Port of the clients, and that of the admin side. */
  port: number;
  adminPort: number;
  /** Port for a server that the page starts itself. */
  otherPort: number;
  /** Origin of the server that plays all vendors. */
  vendor: string;
  /** Addresses for pages that use databases. */
  postgres: string;
  redis: string;
}

/** A page's script, with the output that the page shows for each of its console commands. */
export interface PageScript {
  text: string;
  /** Expected output, by the name of the file that the script writes the real one to. */
  outputs: ReadonlyMap<string, string>;
}

/** A block that the test cannot run: services, containers, other machines. `sh -n` still reads it. */
export const NOT_RUN = "no-run";

/** True if the reader of a page begins with nothing, not even a key. */
export function isTutorial({ path }: Page): boolean {
  return /tutorials|^README/.test(path);
}

/** True if a block starts the gateway and nothing else. */
const STARTS = /^(?:sluice(?: serve(?: --hostname \S+)?)?|npx -y deno@[\d.]+ task start)$/;

/**
 * The script of a page. It starts the gateway where the page does, otherwise before the first command that needs it.
 */
export function pageScript({ blocks }: Page, place: ScriptPlace): PageScript {
  const outputs = new Map<string, string>();
  const parts: string[] = [];
  const shell = blocks.filter(({ language, note }) => language === "sh" && note !== NOT_RUN);
  const startsItself = shell.some(({ text }) => lines(text).some((line) => STARTS.test(line)));
  let isStarted = false;
  for (const block of blocks) {
    if (isConfiguration(block)) parts.push(`cat > sluice.jsonc <<'PAGE_END'\n${withVendor(block.text, place)}PAGE_END`);
    if (
      !startsItself && !isStarted && /127\.0\.0\.1:8790|_BASE_URL|llm\.example\.com/.test(block.text) &&
      shell.includes(block)
    ) {
      parts.push(START);
      isStarted = true;
    }
    if (shell.includes(block)) parts.push(shellPart(block, place));
    if (block.language === "console") {
      for (const { command, output } of consoleCommands(block.text)) {
        const name = `shown-${outputs.size}`;
        outputs.set(name, output);
        parts.push(`{ ${command}\n} > ${name} 2>&1`);
      }
    }
  }
  const text = parts.join("\n").replaceAll("8790", String(place.port)).replaceAll("8791", String(place.adminPort))
    .replaceAll(/postgres:[^\s'"]+/g, place.postgres).replaceAll(/rediss?:[^\s'"]+/g, place.redis)
    .replaceAll("8795", String(place.otherPort));
  return { text, outputs };
}

const START = "start_gateway";

function lines(text: string): string[] {
  return text.split("\n").map((line) => line.replace(/\s+#.*$/, "").trim());
}

/** A block that the reader saves as the configuration. */
function isConfiguration({ language, text }: CodeBlock): boolean {
  return language === "jsonc" && text.startsWith("// sluice.jsonc\n");
}

/** Has every upstream be the server of the test. */
function withVendor(text: string, { vendor }: ScriptPlace): string {
  return text.replaceAll(/"base_url": "[^"]*",?/g, "").replaceAll(
    /"vendor": "(?!embedded)([^"]+)"/g,
    (member, name) => `${member}, "base_url": "${vendor}${name === "anthropic" ? "" : "/v1"}"`,
  );
}

/** The commands unchanged, with values for the placeholders, and the gateway in the background. */
function shellPart({ text }: CodeBlock, place: ScriptPlace): string {
  const filled = text.replaceAll(/(?<==\S*)…/g, "0123456789abcdef").replaceAll("sk-sluice-…", "$SLUICE_API_KEY")
    .replaceAll("https://llm.example.com", "http://127.0.0.1:8790").replaceAll(" --long", ""); // --long takes 90 s
  // The databases of tests do not sync their disks, which is an error for `doctor`.
  const lenient = place.postgres === "" ? filled : filled.replace(/^sluice doctor$/m, "sluice doctor || true");
  const pointed = lenient.replaceAll(/sluice init\b/g, `sluice init --base-url ${place.vendor}/v1`);
  return pointed.split("\n").filter((line) => !/^npx -y deno@[\d.]+ task test\b/.test(line))
    .map((line) => STARTS.test(lines(line)[0] ?? "") ? START : line).join("\n");
}

/**
 * Compares two outputs without the parts that differ with each run: numbers, ids, keys, times and the width of columns.
 */
export function comparable(output: string): string {
  return output.replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME").replaceAll(/\b(key|req)_(?:[\w-]|…)+/g, "$1")
    .replaceAll(/sk-sluice-(?:[\w-]|…)+/g, "sk").replaceAll(/<?\b\d[\d.,]*\b/g, "N").replaceAll(/ +/g, " ")
    .replaceAll(/ $/gm, "").trim();
}

/** Returns whether an output matches the shown one. A line `…` matches any number of lines. */
export function isAsShown(output: string, shown: string): boolean {
  const [actual, expected] = [comparable(output), comparable(shown)];
  const [head = "", ...rest] = expected.split(/\n…$/);
  return rest.length > 0 ? actual.startsWith(head) : actual === expected;
}
