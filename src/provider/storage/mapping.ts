import type { EventReason } from '../../api/reasons/events.ts';
import { PARAMETER_FOREIGN_CLASS } from '../../api/names.ts';
import type { VirtualNodeSpec } from '../../api/virtual-node.ts';
import type { StorageClass } from './claims.ts';

export type ClassMapping = Pick<VirtualNodeSpec, 'storageClasses' | 'offeredStorageClasses'>;

type MappedClass = { foreignClass: string } | { reason: EventReason; message: string };

/**
 * The class over there for a class here: as people say for that cluster, else as the class itself says. There is no other way:
 * the default class of the foreign cluster would put data where nobody has chosen to have it.
 */
export function mapClass(homeClass: StorageClass, mapping: ClassMapping, virtualNode: string): MappedClass {
  const { name } = homeClass.metadata;
  const { storageClasses = {}, offeredStorageClasses } = mapping;
  const foreignClass =
    entryOf(storageClasses, name) ?? entryOf(homeClass.parameters ?? {}, PARAMETER_FOREIGN_CLASS);
  if (foreignClass === undefined || foreignClass === '') {
    return {
      reason: 'StorageClassNotMapped',
      message:
        `nobody has said which class StorageClass "${name}" is in the cluster of virtual node ${virtualNode}: ` +
        `name it under storageClasses of the AcceptancePolicy (or VirtualNode), or in the parameter ${PARAMETER_FOREIGN_CLASS} of the class`,
    };
  }
  if (offeredStorageClasses !== undefined && !offeredStorageClasses.includes(foreignClass)) {
    const lent = offeredStorageClasses.length === 0 ? 'none' : offeredStorageClasses.join(', ');
    return {
      reason: 'StorageClassNotOffered',
      message:
        `the cluster of virtual node ${virtualNode} does not lend class "${foreignClass}", which StorageClass "${name}" is to be there; ` +
        `it lends: ${lent}`,
    };
  }
  return { foreignClass };
}

const entryOf = (record: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
