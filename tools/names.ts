/**
 * Checks that exported type names are unique, that no file has too many imports, and that each `mod.ts` exports few
 * values.
 */
import { SELF_CONTAINED } from "./layer_table.ts";
import { blankComments, type SourceFile } from "./sources.ts";

/** Files that put the whole program together, and so may have any number of imports. */
const COMPOSITION_ROOTS = ["lib/gateway.ts", "lib/upstreams/create_upstreams.ts", "routes/manifest.ts"];

/** Maximum number of modules that one file imports: a file with more does more than one job. */
const MAX_IMPORTS = 15;

/** Minimum and maximum number of values, such as functions, that the `mod.ts` of a self-contained part exports. */
const EXPORTED_VALUES = { min: 3, max: 6 };

/** Parts that are libraries of functions, and so may export any number. */
const LIBRARIES = ["lib/json"];

/** Lists exported type names that more than one file declares. Re-exports do not count. */
export function checkTypeNames(files: readonly SourceFile[]): string[] {
  const declared = new Map<string, string[]>();
  for (const { path, text } of files) {
    const pattern = /^export (?:declare )?(?:interface|type|(?:abstract )?class|enum) (\w+)\b/gm;
    for (const [, name = ""] of blankComments(text).matchAll(pattern)) {
      declared.set(name, [...declared.get(name) ?? [], path]);
    }
  }
  return [...declared].flatMap(([name, paths]) =>
    paths.length < 2 ? [] : [`${paths.join(", ")}: each exports a type named ${name}; qualify the names`]
  );
}

/** Lists files that import more than `MAX_IMPORTS` modules. */
export function checkImportCounts(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    if (COMPOSITION_ROOTS.includes(path)) return [];
    const imported = new Set(
      [...blankComments(text).matchAll(/^(?:import|export) [^;]*?from "([^"]+)"/gm)].map(([, from]) => from),
    );
    return imported.size > MAX_IMPORTS
      ? [`${path}: imports ${imported.size} modules; the maximum is ${MAX_IMPORTS}`]
      : [];
  });
}

/** Lists self-contained parts whose `mod.ts` exports too few or too many values. Types do not count. */
export function checkFrontDoors(files: readonly SourceFile[]): string[] {
  const doors = SELF_CONTAINED.filter((part) => !LIBRARIES.includes(part)).map((part) => `${part}/mod.ts`);
  return files.filter(({ path }) => doors.includes(path)).flatMap(({ path, text }) => {
    const lists = [...blankComments(text).matchAll(/^export \{([^}]*)\} from/gm)];
    const values = lists.flatMap(([, list = ""]) => list.split(",")).filter((name) => /^\s*(?!type )\w/.test(name));
    return values.length >= EXPORTED_VALUES.min && values.length <= EXPORTED_VALUES.max
      ? []
      : [`${path}: exports ${values.length} values; expected ${EXPORTED_VALUES.min} to ${EXPORTED_VALUES.max}`];
  });
}
