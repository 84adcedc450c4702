"""Words of the sheet of method in English and Korean, by the same keys, and of all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from psd.privacy.loss import RHO, delta_text, epsilon_text
from psd.release.cube import first_record
from psd.release.series import SeriesRecord

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.query.answer_table import Limits
    from psd.release.record import ReleaseRecord

Language = Literal["en", "ko"]

_EN: Final = {
    "title": "Differentially private counts of locations",
    "lead": "Sheet of method: what is published, how, and how exactly.",
    "in_short": "In short",
    "publisher": "Publisher", "description": "Description", "reference_date": "Reference date",
    "licence": "Licence", "contact": "Contact", "language": "Language",
    "counts": "Counts", "values": "Sums and means", "area": "Area", "slices": "Time slices",
    "slices_text": "{n} by {by}, from {first} to {last}", "guarantee": "Guarantee",
    "hour": "hour", "day": "day", "week": "week", "month": "month", "year": "year",
    "shown": "Of the {n} time slices, {name} is shown.",
    "all_time": "All {n} time slices are shown together.",
    "protected": "What is protected",
    "protects": "The release protects {what}. With or without it, each possible release is almost "
    "equally likely. This is differential privacy with {loss} {unit}.",
    "of_record": "one record: adding or removing any one record of the data",
    "of_user": "one user: adding or removing all records of any one user",
    "of_user-day": "the records of one user on one day",
    "of_user-slice": "the records of one user in one time slice",
    "of_report": "the whole answer of one device, which randomised it before it was sent",
    "delta": "With a probability of at most {delta} the release may tell more than epsilon allows.",
    "local": "The publisher never had the locations. Each device changed its answer at random "
    "before it sent it.",
    "central": "The exact counts stayed with the publisher. Random noise was added to each count "
    "before it was published.",
    "readers": "The guarantee holds against any reader, whatever the reader knows or can compute, "
    "now or later. Tables, maps and statistics that are made of the release have the same "
    "guarantee.",
    "population": "It does not hide what is true of the population: a reader learns how many "
    "people are where, with the errors stated below. Several releases of the same people add their "
    "epsilons up.",
    "why": "Why this epsilon: {reason}",
    "odds": "What epsilon means in odds",
    "odds_text": "Suppose that a reader suspects that {what}. The release changes the odds of this "
    "by a factor of at most {factor}, up or down, even if the reader knows everything else.",
    "that_record": "a certain record is in the data",
    "that_user": "a certain person is in the data",
    "that_user-day": "a certain person on a certain day is in the data",
    "that_user-slice": "a certain person in a certain time slice is in the data",
    "that_report": "a certain place, and not another one, is the true answer of a device",
    "odds_caption": "Probability of the suspicion before the release, and the limits after it.",
    "before": "before", "least": "after, at least", "most": "after, at most",
    "below": "below {0}", "above": "above {0}",
    "accuracy": "How accurate it is",
    "errors": "The error of each answer is predicted from the release. It has two parts: "
    "perturbation error, from the noise, and non-uniformity error, from cells that an area covers "
    "in part.",
    "regions": "Regions, by level.", "level": "level", "square": "square",
    "squares": "Squares, {n} of each size, at random where the release estimates {counted}.",
    "records": "records", "users": "users", "part": "{0} of the area",
    "estimate": "median estimate", "error": "median error",
    "relative_error": "median relative error",
    "good": "good", "use with care": "use with care", "poor": "poor",
    "map": "The map", "cell": "cell", "region": "region",
    "map_alt": "Map of the {kind} of the {what}s.", "density": "density", "quality": "quality",
    "density_cell": "Estimated density of each cell; small cells are where records are many.",
    "density_region": "Estimated density of each region.",
    "elsewhere": "What lies in no region is counted as {0}, and not drawn.",
    "gap": "What lies in no region was not counted, and is not drawn.",
    "quality_of": "Quality of the estimate of each {what}. Larger areas have better estimates.",
    "built": "How it was built",
    "built_text": "The area was divided into a tree of cells. The records of each cell were "
    "counted, and noise was added to each count. Counts of a cell and of its parts were then made "
    "consistent, which uses no data. No place is in cells whose {measure}s sum to more than the "
    "{measure} of the release.",
    "epsilon": "epsilon", "rho": "rho",
    "method": "Method", "parameters": "Parameters", "cells": "Cells",
    "cells_text": "{n}, of which {leaves} are not cut", "loss": "Loss of all levels",
    "source": "Source of the counts", "min_cell": "Smallest cell",
    "resolution": "Coordinate resolution", "boundary": "Boundary",
    "has_boundary": "records outside a public boundary were left out",
    "covariate": "Covariate", "has_covariate": "a public raster inside cells",
    "estimates": "Estimates", "estimates_text": "{estimate}, density {density}",
    "library": "Library", "none": "none",
    "reading": "How to read the numbers",
    "intervals": "Each answer is an estimate with an interval that covers the true count in 95 of "
    "100 releases, by our tests ({tests}).",
    "bounded": "At most {n} records of each user were counted, so that the counts are smaller than "
    "those of all records.",
    "advice": "Do not read single small cells: an estimate of a few records may be noise alone. "
    "Add cells up, or ask for a larger area; the relative error falls. Do not compare two "
    "estimates whose intervals overlap without psd query --difference, which states the error of "
    "the difference.",
    "cite": "How to cite it", "citation": "Differentially private release, {loss}",
    "digest": "psd sign check compares a file with this digest. This sheet was made by psd "
    "{version}.",
}  # fmt: skip

_KO: Final = {
    "title": "차분 프라이버시로 보호한 위치 통계",
    "lead": "방법 설명서: 무엇을 어떻게, 얼마나 정확하게 공표하는가",
    "in_short": "요약",
    "publisher": "공표 기관", "description": "설명", "reference_date": "기준 시점",
    "licence": "이용 허락", "contact": "연락처", "language": "언어",
    "counts": "세는 것", "values": "합계와 평균", "area": "영역", "slices": "시간 구간",
    "slices_text": "{first}부터 {last}까지 {n}개, {by} 단위", "guarantee": "보장",
    "hour": "시간", "day": "일", "week": "주", "month": "월", "year": "연",
    "shown": "시간 구간 {n}개 가운데 {name} 구간을 보입니다.",
    "all_time": "시간 구간 {n}개를 모두 합쳐 보입니다.",
    "protected": "무엇을 보호하는가",
    "protects": "이 공개 자료는 {what} 보호합니다. 그것이 있든 없든, 나올 수 있는 공개 자료의 "
    "가능성은 거의 같습니다. 이것이 차분 프라이버시이며, 손실은 {loss}, 보호 단위는 {unit}입니다.",
    "of_record": "기록 한 건을, 곧 어느 기록 하나를 더하거나 뺀 차이를",
    "of_user": "사용자 한 명을, 곧 어느 사용자의 기록 전부를 더하거나 뺀 차이를",
    "of_user-day": "사용자 한 명의 하루 기록을",
    "of_user-slice": "사용자 한 명의 시간 구간 하나의 기록을",
    "of_report": "기기 한 대의 응답 전부를(기기가 보내기 전에 스스로 무작위로 바꿈)",
    "delta": "엡실론이 허용하는 것보다 더 많이 드러날 확률은 최대 {delta}입니다.",
    "local": "공표 기관은 위치를 가진 적이 없습니다. 기기마다 응답을 무작위로 바꾼 뒤에 "
    "보냈습니다.",
    "central": "정확한 개수는 공표 기관 밖으로 나가지 않았습니다. 공표하기 전에 개수마다 무작위 "
    "잡음을 더했습니다.",
    "readers": "이 보장은 읽는 사람이 무엇을 알고 무엇을 계산할 수 있든, 지금도 나중에도 "
    "성립합니다. 이 공개 자료로 만든 표, 지도, 통계의 보장도 같습니다.",
    "population": "모집단에 대한 사실을 숨기지는 않습니다. 어디에 얼마나 있는지는 아래에 적은 "
    "오차 안에서 알 수 있습니다. 같은 사람들에 대한 공개 자료가 여럿이면 엡실론을 더합니다.",
    "why": "이 엡실론을 고른 까닭: {reason}",
    "odds": "승산으로 본 엡실론",
    "odds_text": "읽는 사람이 {what}고 의심한다고 합시다. 그 밖의 모든 것을 알더라도, 이 공개 "
    "자료로 그 승산이 오르거나 내리는 것은 최대 {factor}배입니다.",
    "that_record": "어떤 기록이 자료에 있다",
    "that_user": "어떤 사람이 자료에 있다",
    "that_user-day": "어떤 사람의 어느 하루가 자료에 있다",
    "that_user-slice": "어떤 사람의 어느 시간 구간이 자료에 있다",
    "that_report": "한 기기의 참 응답이 다른 곳이 아닌 어떤 곳이다",
    "odds_caption": "공개 전에 의심한 확률과 공개 후의 한계.",
    "before": "공개 전", "least": "공개 후 최소", "most": "공개 후 최대",
    "below": "{0} 미만", "above": "{0} 초과",
    "accuracy": "얼마나 정확한가",
    "errors": "답마다 오차를 공개 자료에서 예측합니다. 오차에는 두 부분이 있습니다. 잡음 오차는 "
    "잡음에서, 잘린 셀 오차는 영역이 일부만 덮은 셀에서 옵니다.",
    "regions": "단계별 구역.", "level": "단계", "square": "정사각형",
    "squares": "정사각형을 크기마다 {n}개씩, 추정한 {counted} 분포에 따라 무작위로 골랐습니다.",
    "records": "기록", "users": "사용자", "part": "영역의 {0}",
    "estimate": "추정값 중앙값", "error": "오차 중앙값", "relative_error": "상대 오차 중앙값",
    "good": "좋음", "use with care": "주의", "poor": "나쁨",
    "map": "지도", "cell": "셀", "region": "구역",
    "map_alt": "{what}의 {kind} 지도.", "density": "밀도", "quality": "품질",
    "density_cell": "셀마다 추정한 밀도. 작은 셀은 기록이 많은 곳에 있습니다.",
    "density_region": "구역마다 추정한 밀도.",
    "elsewhere": "어느 구역에도 없는 곳은 {0}로 세며, 그리지 않습니다.",
    "gap": "어느 구역에도 없는 곳은 세지 않았으며, 그리지 않습니다.",
    "quality_of": "{what}마다 추정값의 품질. 넓을수록 추정이 정확합니다. 그림의 good은 좋음, use "
    "with care는 주의, poor는 나쁨입니다.",
    "built": "어떻게 만들었는가",
    "built_text": "영역을 나무 모양의 셀로 나누고, 셀마다 기록을 세어 개수마다 잡음을 더했습니다. "
    "그런 다음 셀의 개수와 그 부분의 개수를 서로 맞추었으며, 여기에는 자료를 쓰지 않았습니다. "
    "어느 장소에서든 그 장소가 든 셀들의 {measure} 합은 공개 자료의 {measure} 값을 넘지 않습니다.",
    "epsilon": "엡실론", "rho": "로",
    "method": "방법", "parameters": "매개변수", "cells": "셀",
    "cells_text": "{n}개, 그중 더 나누지 않은 셀 {leaves}개", "loss": "모든 단계의 손실",
    "source": "개수의 출처", "min_cell": "가장 작은 셀",
    "resolution": "좌표 해상도", "boundary": "경계",
    "has_boundary": "공개된 경계 밖의 기록은 뺐습니다",
    "covariate": "공변량", "has_covariate": "셀 안에 공개된 래스터를 씀",
    "estimates": "추정", "estimates_text": "{estimate}, 밀도 {density}",
    "library": "라이브러리", "none": "없음",
    "reading": "숫자를 읽는 법",
    "intervals": "답마다 추정값과 구간이 있습니다. 구간은 시험에서 공개 100번 가운데 95번 참값을 "
    "포함했습니다({tests}).",
    "bounded": "사용자마다 최대 {n}건만 세었으므로, 모든 기록을 센 것보다 작습니다.",
    "advice": "작은 셀 하나하나를 읽지 마십시오. 몇 건뿐인 추정값은 잡음일 수 있습니다. 셀을 "
    "더하거나 더 넓은 영역을 물으면 상대 오차가 줄어듭니다. 구간이 겹치는 두 추정값을 비교할 때는 "
    "차이의 오차를 알려 주는 psd query --difference를 쓰십시오.",
    "cite": "인용 방법", "citation": "차분 프라이버시로 보호한 공개 자료, {loss}",
    "digest": "psd sign check로 파일을 이 SHA-256 값과 비교할 수 있습니다. psd {version} 제작.",
}  # fmt: skip

SHEET: Final[Mapping[Language, Mapping[str, str]]] = {"en": _EN, "ko": _KO}


def page_language(release: Release) -> Language:
    """Language of the pages: Korean for a release in Korean, otherwise English."""
    stated = release.record.about_texts.get("language", "")
    return "ko" if stated.lower().split("-")[0] == "ko" else "en"


def loss_text(release: Release, language: Language) -> str:
    """Epsilon; of Gaussian noise with its delta and rho."""
    record, first = release.record, _first_of(release)
    if language == "en":
        return record.loss_text
    text = f"엡실론 {epsilon_text(record.epsilon)}"
    if first.delta is not None and first.rho is not None:
        text += f", 델타 {delta_text(first.delta)}(로 {RHO.text(first.rho)})"
    return text


def values_text(release: Release, language: Language) -> str:
    """Values with their bounds; empty without values."""
    stated = release.metadata.get("values", "")
    if language == "en" or not stated:
        return stated
    values = _first_of(release).values
    each = (f"{one.name} {one.lower:g}부터 {one.upper:g}까지" for one in values)
    return f"{', '.join(each)}; 범위를 벗어난 값은 가까운 끝값으로 셉니다"


def counted_text(release: Release, language: Language) -> str:
    """What the counts count."""
    record, unit = release.record, release.unit
    if language == "en":
        return record.counted_text
    is_total = _first_of(release).is_running_total
    text = {"record": "기록", "report": "기기 (각각 응답 한 번)"}.get(unit.kind, "사용자")
    if unit.has_user and not unit.weight:
        text = f"남긴 기록 ({_bound(release)})"
    return text + "; 앞선 모든 시간 구간을 더한 값" * is_total


def _bound(release: Release) -> str:
    """Contribution bound in Korean."""
    unit, record = release.unit, release.record
    whose = {"user-day": "사용자의 하루마다", "user-slice": "사용자의 시간 구간마다"}
    text = f"{whose.get(unit.kind, '사용자마다')} 최대 {unit.max_contributions}건"
    if isinstance(record, SeriesRecord) and record.bound_text:
        text = f"시간 구간마다 {text}"
    if unit.max_per_slice is not None:
        text += f", 시간 구간 하나에 최대 {unit.max_per_slice}건"
    return text


def protected_text(release: Release, language: Language) -> str:
    """The unit of privacy."""
    record, unit = release.record, release.unit
    if language == "en":
        bound = record.bound_text if isinstance(record, SeriesRecord) else ""
        return f"{record.unit_text}{bound}"
    text = {
        "record": "기록 한 건",
        "report": "기기 한 대의 응답 (기기마다 한 번, 기기가 스스로 무작위로 바꿈)",
        "user-day": f"사용자 한 명의 하루 ({unit.time_zone})",
        "user-slice": "사용자 한 명의 시간 구간 하나",
    }.get(unit.kind, "사용자 한 명")
    if unit.has_user and not unit.weight:
        text += f", {_bound(release)}"
    # What T days or slices of a user cost.
    several = re.search(r"of T (days|slices) has (.+)$", record.unit_text)
    if several is not None:
        each = {"days": "날", "slices": "시간 구간"}[several[1]]
        text += f"; {each}이 T개인 사용자의 손실은 {several[2]}"
    return text


def source_text(release: Release, language: Language) -> str:
    """Who drew the counts."""
    source = _first_of(release).source
    if language == "en":
        return release.metadata["source"]
    return {
        "curator": "psd가 잡음을 더함",
        "given": "주어진 개수: psd가 잡음을 더하지 않았으며 엡실론을 보증하지 않습니다",
        "local": "기기가 스스로 무작위로 바꿈",
    }.get(source, source)


def limits_texts(limits: Limits, language: Language) -> list[str]:
    """What relative errors and the classes of quality are."""
    if language == "en":
        words = {"relative_error": "Relative error", "reliable": "Reliable", "quality": "Quality"}
        return [f"{words[name]}: {text}." for name, text in limits.texts.items()]
    return [
        "상대 오차: 오차를 추정값으로 나눈 값. 추정값만 0이면 무한대입니다.",
        f"신뢰할 수 있음: 상대 오차가 {limits.reliable:g} 이하이고 구간이 0보다 큼.",
        f"품질: 신뢰할 수 있고 상대 오차가 {limits.good:g} 이하이면 좋음, 그 밖에 신뢰할 수 있으면 "
        "주의, 신뢰할 수 없으면 나쁨.",
    ]


def _first_of(release: Release) -> ReleaseRecord:
    """Record of a release, of the first slice, or of the plane of a cube."""
    return first_record(release.record)
