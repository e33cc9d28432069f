/** Checks that a type name has one meaning, no file knows too many others, and front doors are small. One line per violation. */
import { SELF_CONTAINED } from "./layer_table.ts";
import { blankComments, type SourceFile } from "./sources.ts";

/** Composition roots put everything together, so they may import everything. */
const COMPOSITION_ROOTS = ["lib/gateway.ts", "lib/upstreams/create_upstreams.ts", "routes/manifest.ts"];

/** Imports in one file. More than this means that the file does more than one job. */
const MAX_IMPORTS = 15;

/** Values, such as functions, that a self-contained part exports: fewest and most. */
const FRONT_DOOR = { min: 3, max: 6 };

/** Parts that are libraries of functions instead. */
const LIBRARIES = ["lib/json"];

/** Exported type names that more than one file declares, each with its files. Re-exports are no declarations. */
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

/** Files that import more than `MAX_IMPORTS` modules. */
export function checkImportCounts(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    if (COMPOSITION_ROOTS.includes(path)) return [];
    const imported = new Set(
      [...blankComments(text).matchAll(/^(?:import|export) [^;]*?from "([^"]+)"/gm)].map(([, from]) => from),
    );
    return imported.size > MAX_IMPORTS
      ? [`${path}: imports ${imported.size} modules; ${MAX_IMPORTS} are the most`]
      : [];
  });
}

/** Self-contained parts whose `mod.ts` exports too few or too many values. Types do not count. */
export function checkFrontDoors(files: readonly SourceFile[]): string[] {
  const doors = SELF_CONTAINED.filter((part) => !LIBRARIES.includes(part)).map((part) => `${part}/mod.ts`);
  return files.filter(({ path }) => doors.includes(path)).flatMap(({ path, text }) => {
    const lists = [...blankComments(text).matchAll(/^export \{([^}]*)\} from/gm)];
    const values = lists.flatMap(([, list = ""]) => list.split(",")).filter((name) => /^\s*(?!type )\w/.test(name));
    return values.length >= FRONT_DOOR.min && values.length <= FRONT_DOOR.max
      ? []
      : [`${path}: exports ${values.length} values; expected ${FRONT_DOOR.min} to ${FRONT_DOOR.max}`];
  });
}
