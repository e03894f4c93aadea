import { customResourceDefinitions } from '../../src/api/crd/index.ts';
import { printYaml } from '../../src/cli/yaml.ts';

/** One file per CustomResourceDefinition, named as the object. */
export const definitionFiles = (): Record<string, string> =>
  Object.fromEntries(
    customResourceDefinitions().map((definition) => [
      `deploy/crds/${definition.metadata.name}.yaml`,
      `# Made by tools/generate.ts from src/api/crd.\n${printYaml([definition])}`,
    ]),
  );
