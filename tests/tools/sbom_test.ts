import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import denoJson from "../../deno.json" with { type: "json" };
import { noticeOf } from "../../tools/notice.ts";
import { type Bom, bomOf, type Component } from "../../tools/sbom.ts";
import { isLeftOut, type Part, readParts } from "../../tools/sbom_parts.ts";
import { ALLOWED, LEFT_OUT, OWN_MARKS, PIECES, RUNTIME } from "../../tools/sbom_rules.ts";
import { filesBelow, installedParts, repositoryFile } from "./supply.ts";

const RUNTIME_VERSIONS = { deno: "2.9.6", v8: "15.0", sqlite: "3.53" };
/** A copyright line of an owner; those of a licence's own text are in capitals, or continue with "notice". */
const NOTICE_LINE = /\b[Cc]opyright (?:\([Cc]\)|©|\d{4}|the \p{Lu}|\p{Lu})/u;

function everyComponent(components: readonly Component[]): Component[] {
  return components.flatMap((component) => [component, ...everyComponent(component.components ?? [])]);
}

async function bom(parts?: readonly Part[]): Promise<Bom> {
  return await bomOf({ parts: parts ?? await installedParts(), runtime: RUNTIME_VERSIONS });
}

Deno.test("the SBOM lists every package of the lock file with version, hash and licence, and nothing else", async () => {
  const lock: Record<string, { integrity: string }> = JSON.parse(await repositoryFile("deno.lock")).npm;
  // Some names end with those of their peers.
  const npm = Object.fromEntries(Object.entries(lock).map(([name, row]) => [name.replace(/_.*$/, ""), row]));
  const { components, metadata, compositions } = await bom();
  assertEquals(metadata.component.version, denoJson.version);
  const libraries = components.filter(({ type }) => type === "library");
  assertEquals(libraries.map(({ name, version }) => `${name}@${version}`).sort(), Object.keys(npm).sort());
  for (const { name, version, purl, hashes } of libraries) {
    const bytes = atob((npm[`${name}@${version}`]?.integrity ?? "").slice("sha512-".length));
    const hex = Array.from(bytes, (char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    assertEquals(hashes, [{ alg: "SHA-512", content: hex }]);
    assertEquals(purl, `pkg:npm/${name.replace("@", "%40")}@${version}`);
  }
  assertEquals(components.length - libraries.length, RUNTIME.length);
  // Parts that are not listed individually are marked as such.
  assertEquals(compositions.map(({ aggregate, assemblies }) => [aggregate, assemblies.length]), [
    ["complete", libraries.length],
    ["incomplete", RUNTIME.length],
  ]);
});

Deno.test("the SBOM's dependencies refer to unique, existing components", async () => {
  const { components, dependencies, metadata } = await bom();
  const refs = everyComponent([metadata.component, ...components]).map((component) => component["bom-ref"]);
  assertEquals(new Set(refs).size, refs.length);
  for (const { ref, dependsOn } of dependencies) {
    for (const name of [ref, ...dependsOn]) assert(refs.includes(name), name);
  }
  // Every package is needed by the program, or by a package that is.
  const needed = new Set([metadata.component["bom-ref"]]);
  for (const ref of needed) {
    for (const name of dependencies.find((row) => row.ref === ref)?.dependsOn ?? []) needed.add(name);
  }
  assertEquals(components.filter((one) => one.purl?.startsWith("pkg:npm/") && !needed.has(one.purl)), []);
});

Deno.test("the SBOM is deterministic, with a serial number per tree", async () => {
  const parts = await installedParts();
  const first = await bom(parts);
  assertEquals(await bom(parts), first);
  assertMatch(first.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  assert(
    (await bom(parts.slice(1).map((part) => ({ ...part, dependencies: [] }))).catch(() => undefined))?.serialNumber !==
      first.serialNumber,
  );
});

Deno.test("everything in a released executable has an allowed licence", async () => {
  const { components } = await bom();
  for (const { name, licenses } of everyComponent(components)) {
    for (const { license } of licenses) assert(ALLOWED.includes(license.id), `${name}: ${license.id}`);
  }
});

Deno.test("every copyright notice in a package belongs to the package or a listed part", async () => {
  for (const { name, folder, texts } of await installedParts()) {
    const marks = [
      ...PIECES.filter(({ inside }) => inside === name).flatMap(({ marks }) => marks ?? []),
      ...OWN_MARKS[name] ?? [],
    ];
    const own = texts.map(({ text }) => text).join("\n");
    for (const file of await filesBelow(folder)) {
      if (!/\.(?:[cm]?[jt]s|rs)$/.test(file) || isLeftOut(name, file)) continue;
      const lines = (await Deno.readTextFile(`${folder}/${file}`)).split("\n").filter((line) => line.length < 500);
      for (const line of lines.filter((line) => NOTICE_LINE.test(line))) {
        const isKnown = marks.some((mark) => line.includes(mark)) || own.includes(line.replace(/^[\s/*]+/, ""));
        assert(isKnown, `${name}/${file}: ${line.trim()}`);
      }
    }
  }
});

Deno.test("every listed mark and exclusion still exists in its package", async () => {
  const parts = new Map((await installedParts()).map((part) => [part.name, part]));
  for (const { inside, name, marks = [] } of PIECES) {
    const folder = parts.get(inside)?.folder;
    assert(folder !== undefined, name);
    const files = (await filesBelow(folder)).filter((file) => /\.[cm]?js$/.test(file));
    const texts = marks.length === 0
      ? []
      : await Promise.all(files.map((file) => Deno.readTextFile(`${folder}/${file}`)));
    for (const mark of marks) assert(texts.some((text) => text.includes(mark)), `${inside}: ${mark}`);
  }
  for (const { package: name, path } of LEFT_OUT) await Deno.stat(`${parts.get(name)?.folder}/${path}`);
});

Deno.test("NOTICE matches the packages of the lock file", async () => {
  assertEquals(await repositoryFile("NOTICE"), noticeOf(await installedParts()));
});

Deno.test("a missing package or licence is an error", async () => {
  const cache = await Deno.makeTempDir();
  const lock = JSON.stringify({ npm: { "thing@1.0.0": { integrity: "sha512-AAAA" } } });
  try {
    await assertRejects(() => readParts({ lock, cache }), Error, "Cannot list thing@1.0.0: it is not in");
    await Deno.mkdir(`${cache}/registry.example/thing/1.0.0`, { recursive: true });
    const file = `${cache}/registry.example/thing/1.0.0/package.json`;
    await Deno.writeTextFile(file, "{}");
    await assertRejects(() => readParts({ lock, cache }), Error, "Cannot list thing@1.0.0: its package.json names no");
    await Deno.writeTextFile(file, '{"license":"GPL-3.0-only","scripts":{"postinstall":"true"}}');
    const [part] = await readParts({ lock, cache });
    assertEquals([part?.license, part?.installScripts], ["GPL-3.0-only", ["postinstall"]]);
    let text = "";
    try {
      noticeOf(part === undefined ? [] : [part]);
    } catch (error) {
      text = error instanceof Error ? error.message : "";
    }
    assertEquals(text, "Cannot write the notice of thing@1.0.0: it ships no licence");
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});
