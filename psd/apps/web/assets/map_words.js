// Words of the page in English and Korean; the keys are the same in both.
"use strict";

const psdWords = {
  en: {
    show: "Show", count: "Count", density: "Density", reliability: "Reliability",
    cells: "Cells", cell: "Cell", regions: "Regions", level: "Level of cells", slice: "Time",
    allTime: "all time", span: "Choose a span of time", from: "From", until: "Until",
    category: "Category: {0}", allCategories: "all", otherCategory: "{0} (labels that are not listed)",
    drawApart: "Draw areas and read answers", inWindow: "Time: {0}", inCategory: "{0}: {1}",
    rating: "Computing the errors of the cells …",
    tooLarge: "This release has more than {0} cells: the page answers cells and regions at the steps "
      + "of its slider. Use psd query for other times and for drawn areas.",
    theme: "Dark or light",
    language: "한국어", fit: "Whole area", print: "Print",
    draw: "Draw and read a joint answer", box: "Box", polygon: "Polygon", finish: "Finish",
    clear: "Clear", undo: "Remove last",
    boxNumbers: "Box by numbers", west: "West", south: "South", east: "East", north: "North",
    add: "Add box", list: "Choose regions from a list", filter: "Search by id or name",
    layer: "Areas", answer: "Answer",
    meanOf: "Mean of {0}", sumOf: "Sum of {0}", noInterval: "no interval (perhaps no record)",
    errorsOf: "Errors: noise, cut cells",
    poorMean: "Hatched and faint: poor mean, or one without an interval. Do not use alone.",
    interval: "95% interval", noise: "Error by the noise", uneven: "Error by cut cells",
    both: "Both errors", joint: "All together", shape: "Shape",
    quality: "Quality", good: "good", care: "use with care", poor: "poor",
    legend: "Legend", per: "per", unreliable: "Hatched and faint: poor estimate, do not use alone.",
    faint: "Fainter: use with care.",
    rest: "Areas in no region are not drawn; they are counted as elsewhere.",
    gaps: "Areas in no region are not drawn; nothing was counted there.",
    gap: "A part of this shape lies in no region. Nothing was counted there, so 0 there is no "
      + "estimate.",
    goodText: "good: relative error of at most {0}, interval above 0",
    careText: "use with care: relative error of at most {0}, interval above 0",
    poorText: "poor: a larger error, or an interval that reaches 0",
    drawHelpBox: "Click two corners of a box. By keyboard: move the map with the arrow keys and "
      + "press Enter for a corner at the cross. Escape ends.",
    drawHelpPolygon: "Click the corners of a polygon; click the first one, or press Finish, to "
      + "close it. By keyboard: move the map with the arrow keys and press Enter for a corner at "
      + "the cross. Escape ends.",
    clickHelp: "Click regions, or choose them from the list, for their joint answer.",
    hoverHelp: "Point at an area, or move the cross to it, for its estimate.",
    overlap: "Two shapes overlap: points in both would be counted twice. Remove one for a joint "
      + "answer.",
    outside: "This shape lies outside the area of the release, where nothing was counted.",
    crossing: "The sides of this polygon cross each other. Draw it again.",
    badBox: "West must be below east, and south below north.",
    noDrawing: "Drawn areas are not answered on this page. Use psd query, which has the exact "
      + "answer.",
    levelOnly: "This page has the cells down to level {0} alone. Drawn areas cut cells that it "
      + "does not have: use psd query.",
    noMap: "This browser cannot draw the map (WebGL 2 is missing). Answers still work.",
    working: "Computing …", busy: "Drawing …", records: "records", users: "users", devices: "devices",
    about: "About these numbers",
    aboutText: "Each number is an estimate: random noise protects {0}. The interval is one that "
      + "covers the true count in 95 of 100 releases, by our tests. Do not read single poor cells: ask for a larger area.",
    tests: "Our tests of the intervals", method: "Method", digest: "SHA-256", made: "Made by psd {0}; outlines: Natural Earth; map: "
      + "MapLibre GL JS.",
    record: "each record", user: "each user", "user-day": "each user on each day",
    "user-slice": "each user in each time slice", report: "the answer of each device",
    selected: "{0} of {1} chosen", none: "No area is drawn or chosen.",
    offset: "Grey lines: borders of countries.", regionsAnd: "and {0} more",
  },
  ko: {
    show: "표시", count: "개수", density: "밀도", reliability: "신뢰도",
    cells: "셀", cell: "셀", regions: "고를 구역", level: "셀 단계", slice: "시간",
    allTime: "전체 시간", span: "기간 고르기", from: "시작", until: "끝",
    category: "분류: {0}", allCategories: "전체", otherCategory: "{0} (목록에 없는 값)",
    drawApart: "영역을 그려 묻기", inWindow: "시간: {0}", inCategory: "{0}: {1}",
    rating: "셀의 오차 계산 중 …",
    tooLarge: "이 공개 자료는 셀이 {0}개보다 많아, 이 페이지는 막대의 시간마다 셀과 구역에만 답합니다. "
      + "다른 시간과 그린 영역은 psd query로 물으십시오.",
    theme: "어둡게 또는 밝게",
    language: "English", fit: "전체 영역", print: "인쇄",
    draw: "영역을 그려 함께 묻기", box: "상자", polygon: "다각형", finish: "완료",
    clear: "모두 지우기", undo: "마지막 지우기",
    boxNumbers: "숫자로 상자 지정", west: "서쪽", south: "남쪽", east: "동쪽", north: "북쪽",
    add: "상자 추가", list: "목록에서 구역 고르기", filter: "ID 또는 이름 찾기",
    layer: "구역", answer: "답",
    meanOf: "{0} 평균", sumOf: "{0} 합계", noInterval: "구간 없음(기록이 없을 수 있음)",
    errorsOf: "오차: 잡음, 잘린 셀",
    poorMean: "빗금과 흐린 색: 나쁜 평균이거나 구간이 없으므로 따로 쓰지 마십시오.",
    interval: "95% 구간", noise: "잡음 오차", uneven: "잘린 셀 오차",
    both: "전체 오차", joint: "모두 합쳐서", shape: "도형",
    quality: "품질", good: "좋음", care: "주의", poor: "나쁨",
    legend: "범례", per: "/", unreliable: "빗금과 흐린 색: 나쁜 추정값이므로 따로 쓰지 마십시오.",
    faint: "조금 흐린 색: 주의해서 쓰십시오.",
    rest: "어느 구역에도 없는 곳은 그리지 않고 elsewhere로 셉니다.",
    gaps: "어느 구역에도 없는 곳은 그리지 않습니다. 그곳은 세지 않았습니다.",
    gap: "이 도형의 일부는 어느 구역에도 없습니다. 그곳은 세지 않았으므로 그곳의 0은 추정값이 아닙니다.",
    goodText: "좋음: 상대 오차 {0} 이하, 구간이 0보다 큼",
    careText: "주의: 상대 오차 {0} 이하, 구간이 0보다 큼",
    poorText: "나쁨: 오차가 더 크거나 구간이 0에 닿음",
    drawHelpBox: "상자의 두 모서리를 누르십시오. 키보드: 화살표로 지도를 움직이고 십자 위치에서 "
      + "Enter를 누르십시오. Esc로 끝냅니다.",
    drawHelpPolygon: "다각형의 꼭짓점을 차례로 누르고, 첫 꼭짓점이나 완료를 눌러 닫으십시오. 키보드: "
      + "화살표로 지도를 움직이고 십자 위치에서 Enter를 누르십시오. Esc로 끝냅니다.",
    clickHelp: "구역을 누르거나 목록에서 고르면 함께 답합니다.",
    hoverHelp: "셀이나 구역을 가리키거나 십자를 옮기면 추정값이 나옵니다.",
    overlap: "두 도형이 겹칩니다. 겹친 점은 두 번 세어집니다. 함께 답하려면 하나를 지우십시오.",
    outside: "이 도형은 공개 영역 밖에 있습니다. 그곳은 세지 않았습니다.",
    crossing: "다각형의 변이 서로 엇갈립니다. 다시 그리십시오.",
    badBox: "서쪽은 동쪽보다, 남쪽은 북쪽보다 작아야 합니다.",
    noDrawing: "이 페이지는 그린 영역에 답하지 않습니다. 정확한 답은 psd query에 있습니다.",
    levelOnly: "이 페이지에는 {0}단계까지의 셀만 있습니다. 그린 영역은 더 작은 셀이 필요하므로 "
      + "psd query를 쓰십시오.",
    noMap: "이 브라우저는 지도를 그릴 수 없습니다(WebGL 2 없음). 답은 나옵니다.",
    working: "계산 중 …", busy: "그리는 중 …", records: "건", users: "명", devices: "대",
    about: "이 숫자에 대하여",
    aboutText: "모든 숫자는 추정값입니다. 무작위 잡음이 {0} 보호합니다. 구간은 시험에서 공개 100번 "
      + "가운데 95번 참값을 포함한 것입니다. 나쁜 셀 하나하나를 읽지 말고 더 넓은 영역을 물으십시오.",
    tests: "구간의 시험", method: "방법", digest: "SHA-256", made: "psd {0} 제작, 경계: Natural Earth, 지도: "
      + "MapLibre GL JS.",
    record: "각 기록을", user: "각 사용자를", "user-day": "각 사용자의 하루를",
    "user-slice": "시간 구간마다 각 사용자를", report: "각 기기의 응답을",
    selected: "{1}개 중 {0}개 선택", none: "그리거나 고른 영역이 없습니다.",
    offset: "회색 선: 국경.", regionsAnd: "외 {0}개",
  },
};
