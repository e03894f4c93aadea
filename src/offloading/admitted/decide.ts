/** What is told on a pod that the webhook has let in, where nobody else would say it. Pure. */
import { ANNOTATION_TOO_LARGE } from '../../api/names.ts';
import { unknownPlacementNews } from '../../api/placement.ts';
import type { EventReasons } from '../../api/reasons/events.ts';
import type { Pod } from '../../api/wire.ts';

interface News {
  reason: EventReasons['Pod'];
  message: string;
}

interface AdmittedNews {
  news: News[];
  /** There may be more to tell when the scheduler has looked at the pod. */
  isOpen: boolean;
}

export function newsOfAdmitted(pod: Pod): AdmittedNews {
  const placement = unknownPlacementNews(pod);
  const large = tooLarge(pod);
  return {
    news: [
      ...(placement === undefined ? [] : [{ reason: 'PlacementUnknown' as const, message: placement }]),
      ...(large.message === undefined
        ? []
        : [{ reason: 'TooLargeForNodes' as const, message: large.message }]),
    ],
    isOpen: large.isOpen,
  };
}

/** Told only where the pod waits: one that has found another node lacks nothing. */
function tooLarge({ metadata, spec, status }: Pod): { message?: string; isOpen: boolean } {
  const mark = metadata.annotations?.[ANNOTATION_TOO_LARGE] ?? '';
  const isWaiting = (spec?.nodeName ?? '') === '' && metadata.deletionTimestamp === undefined;
  if (mark === '' || !isWaiting) return { isOpen: false };
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.reason !== 'Unschedulable') return { isOpen: true };
  const message =
    `kept off virtual nodes, since the pod is too large for each single node behind them (${mark}), whatever room there is in all; ` +
    'it is made anew when a node is large enough; or let it request less';
  return { message, isOpen: false };
}
